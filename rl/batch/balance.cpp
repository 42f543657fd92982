#include "rl/batch/balance.h"

#include <algorithm>
#include <numeric>

#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr double kWorthMoving =
    0.98;  // of the tokens that the slowest workers have in all mini-batches

struct Item {
  std::int64_t prompt = 0;
  PromptPlace place;
  std::int64_t tokens = 0;
};

// The prompts of mini-batch k, in their order.
std::vector<Item> items_of(const std::vector<PromptShard>& shards,
                           const std::vector<std::vector<std::int64_t>>& tokens, std::size_t k) {
  std::vector<Item> items;
  for (std::size_t worker = 0; worker < shards.size(); ++worker) {
    const PromptShard& shard = shards[worker];
    CHECK(tokens[worker].size() == shard.prompts.size());
    for (auto row = static_cast<std::size_t>(shard.mini_batch_offsets[k]);
         row < static_cast<std::size_t>(shard.mini_batch_offsets[k + 1]); ++row) {
      items.push_back({shard.prompts[row],
                       {static_cast<std::int64_t>(worker), static_cast<std::int64_t>(row)},
                       tokens[worker][row]});
    }
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.prompt < b.prompt; });
  return items;
}

std::vector<std::int64_t> worker_shares(const std::vector<std::int64_t>& sizes,
                                        const std::vector<std::int64_t>& worker_of,
                                        std::size_t workers) {
  std::vector<std::int64_t> shares(workers, 0);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    shares[static_cast<std::size_t>(worker_of[i])] += sizes[i];
  return shares;
}

double largest(const std::vector<std::int64_t>& shares) {
  return static_cast<double>(*std::max_element(shares.begin(), shares.end()));
}

// Which worker has which share does not matter to this mini-batch. The worker with the least so far
// gets the largest one, so that sums over a step come near each other, too. Adds the shares to
// `totals`.
void hand_out(std::vector<std::int64_t>& worker_of, const std::vector<std::int64_t>& shares,
              std::vector<std::int64_t>& totals) {
  std::vector<std::size_t> by_share(totals.size()), by_total(totals.size());
  std::iota(by_share.begin(), by_share.end(), std::size_t{0});
  std::iota(by_total.begin(), by_total.end(), std::size_t{0});
  std::stable_sort(by_share.begin(), by_share.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::stable_sort(by_total.begin(), by_total.end(),
                   [&](std::size_t a, std::size_t b) { return totals[a] < totals[b]; });
  std::vector<std::int64_t> now(totals.size());
  for (std::size_t k = 0; k < totals.size(); ++k) {
    now[by_share[k]] = static_cast<std::int64_t>(by_total[k]);
    totals[by_total[k]] += shares[by_share[k]];
  }
  for (std::int64_t& worker : worker_of) worker = now[static_cast<std::size_t>(worker)];
}

}  // namespace

std::vector<std::int64_t> assign_evenly(std::span<const std::int64_t> sizes, std::int64_t workers) {
  CHECK(workers > 0);
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<std::int64_t> sums(static_cast<std::size_t>(workers), 0);
  std::vector<std::int64_t> worker_of(sizes.size(), 0);
  for (const std::size_t item : order) {
    const auto least = std::min_element(sums.begin(), sums.end());
    worker_of[item] = least - sums.begin();
    *least += sizes[item];
  }
  return worker_of;
}

std::vector<std::vector<std::int64_t>> spread_evenly(std::span<const std::int64_t> sizes,
                                                     std::int64_t workers) {
  std::vector<std::vector<std::int64_t>> items(static_cast<std::size_t>(workers));
  const std::vector<std::int64_t> worker_of = assign_evenly(sizes, workers);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    items[static_cast<std::size_t>(worker_of[i])].push_back(static_cast<std::int64_t>(i));
  return items;
}

DealtRows deal_rows(std::span<const std::int64_t> sizes, std::int64_t workers,
                    std::int64_t leaves) {
  if (leaves == 0) return {.rows = spread_evenly(sizes, workers)};
  DealtRows dealt{.rows = std::vector<std::vector<std::int64_t>>(static_cast<std::size_t>(workers)),
                  .leaves = {.count = leaves, .of_rows = {}}};
  dealt.leaves.of_rows.resize(static_cast<std::size_t>(workers));
  const std::vector<std::vector<std::int64_t>> of_leaves = spread_evenly(sizes, leaves);
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
    const auto worker = static_cast<std::size_t>(leaf % workers);
    for (const std::int64_t row : of_leaves[static_cast<std::size_t>(leaf)]) {
      dealt.rows[worker].push_back(row);
      dealt.leaves.of_rows[worker].push_back(leaf);
    }
  }
  return dealt;
}

std::optional<BalancedShards> balance_shards(const std::vector<PromptShard>& shards,
                                             const std::vector<std::vector<std::int64_t>>& tokens) {
  CHECK(!shards.empty());
  CHECK(shards.size() == tokens.size());
  BalancedShards balanced{.shards = std::vector<PromptShard>(shards.size()),
                          .places = PromptPlaces(shards.size())};
  std::vector<std::int64_t> totals(shards.size(), 0);
  double before = 0.0;
  double after = 0.0;
  for (std::size_t k = 0; k + 1 < shards.front().mini_batch_offsets.size(); ++k) {
    const std::vector<Item> items = items_of(shards, tokens, k);
    std::vector<std::int64_t> sizes, origins;
    for (const Item& item : items) {
      sizes.push_back(item.tokens);
      origins.push_back(item.place.worker);
    }
    std::vector<std::int64_t> worker_of =
        assign_evenly(sizes, static_cast<std::int64_t>(shards.size()));
    const std::vector<std::int64_t> shares = worker_shares(sizes, worker_of, shards.size());
    before += largest(worker_shares(sizes, origins, shards.size()));
    after += largest(shares);
    hand_out(worker_of, shares, totals);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto worker = static_cast<std::size_t>(worker_of[i]);
      balanced.shards[worker].prompts.push_back(items[i].prompt);
      balanced.places[worker].push_back(items[i].place);
    }
    for (PromptShard& shard : balanced.shards)
      shard.mini_batch_offsets.push_back(static_cast<std::int64_t>(shard.prompts.size()));
  }
  if (after > before * kWorthMoving) return std::nullopt;
  return balanced;
}

BalancedShards deal_leaves(const std::vector<PromptShard>& shards,
                           const std::vector<std::vector<std::int64_t>>& tokens,
                           std::int64_t leaves, bool evenly) {
  CHECK(leaves > 0);
  const std::size_t workers = shards.size();
  BalancedShards dealt{.shards = std::vector<PromptShard>(workers),
                       .places = PromptPlaces(workers),
                       .leaves = std::vector<std::vector<std::int64_t>>(workers)};
  std::vector<std::int64_t> totals(static_cast<std::size_t>(leaves), 0);
  for (std::size_t k = 0; k + 1 < shards.front().mini_batch_offsets.size(); ++k) {
    const std::vector<Item> items = items_of(shards, tokens, k);
    std::vector<std::int64_t> sizes, leaf_of;
    for (const Item& item : items) sizes.push_back(item.tokens);
    if (evenly) {
      leaf_of = assign_evenly(sizes, leaves);
      hand_out(leaf_of, worker_shares(sizes, leaf_of, totals.size()), totals);
    } else {
      for (std::int64_t leaf = 0; leaf < leaves; ++leaf)
        leaf_of.resize(
            items.size() * static_cast<std::size_t>(leaf + 1) / static_cast<std::size_t>(leaves),
            leaf);
    }
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
      const std::size_t worker = static_cast<std::size_t>(leaf) % workers;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (leaf_of[i] != leaf) continue;
        dealt.shards[worker].prompts.push_back(items[i].prompt);
        dealt.places[worker].push_back(items[i].place);
        dealt.leaves[worker].push_back(leaf);
      }
    }
    for (PromptShard& shard : dealt.shards)
      shard.mini_batch_offsets.push_back(static_cast<std::int64_t>(shard.prompts.size()));
  }
  return dealt;
}

}  // namespace rl
