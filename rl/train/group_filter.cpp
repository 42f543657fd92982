#include "rl/train/group_filter.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/core/check.h"

namespace rl {

std::vector<std::vector<std::int64_t>> informative_prompts(
    const std::vector<PromptShard>& shards, const std::vector<std::vector<double>>& scores,
    const std::vector<std::vector<std::uint8_t>>& left_out, std::int64_t samples_per_prompt,
    std::int64_t wanted) {
  CHECK(shards.size() == scores.size());
  CHECK(shards.size() == left_out.size());
  std::map<std::int64_t, std::pair<std::size_t, std::int64_t>>
      found;  // prompt of the round -> worker, row
  for (std::size_t worker = 0; worker < shards.size(); ++worker) {
    CHECK(scores[worker].size() ==
          shards[worker].prompts.size() * static_cast<std::size_t>(samples_per_prompt));
    CHECK(left_out[worker].size() == scores[worker].size());
    for (std::size_t row = 0; row < shards[worker].prompts.size(); ++row) {
      const auto group =
          scores[worker].begin() + static_cast<std::ptrdiff_t>(row) * samples_per_prompt;
      const auto marks =
          left_out[worker].begin() + static_cast<std::ptrdiff_t>(row) * samples_per_prompt;
      if (std::any_of(marks, marks + samples_per_prompt,
                      [](std::uint8_t mark) { return mark != 0; }))
        continue;
      const bool differ = std::any_of(group, group + samples_per_prompt,
                                      [&](double score) { return score != *group; });
      if (differ || samples_per_prompt == 1)
        found[shards[worker].prompts[row]] = {worker, static_cast<std::int64_t>(row)};
    }
  }
  std::vector<std::vector<std::int64_t>> rows(shards.size());
  for (const auto& [prompt, place] : found) {
    if (wanted-- > 0) rows[place.first].push_back(place.second);
  }
  return rows;
}

void append_prompts(std::vector<PromptShard>& kept, const std::vector<PromptShard>& fresh,
                    const std::vector<std::vector<std::int64_t>>& rows) {
  CHECK(fresh.size() == rows.size());
  kept.resize(fresh.size());
  const std::int64_t first = count_prompts(kept);
  std::vector<std::int64_t> order;
  for (std::size_t worker = 0; worker < fresh.size(); ++worker) {
    for (const std::int64_t row : rows[worker])
      order.push_back(fresh[worker].prompts[static_cast<std::size_t>(row)]);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t worker = 0; worker < fresh.size(); ++worker) {
    for (const std::int64_t row : rows[worker]) {
      const auto place = std::lower_bound(order.begin(), order.end(),
                                          fresh[worker].prompts[static_cast<std::size_t>(row)]);
      kept[worker].prompts.push_back(first + (place - order.begin()));
    }
  }
}

void cut_mini_batches(std::vector<PromptShard>& shards, std::int64_t mini_batch_prompts) {
  CHECK(mini_batch_prompts > 0);
  const std::int64_t prompts = count_prompts(shards);
  for (PromptShard& shard : shards) {
    shard.mini_batch_offsets = {0};
    for (std::int64_t end = mini_batch_prompts; end < prompts + mini_batch_prompts;
         end += mini_batch_prompts) {
      shard.mini_batch_offsets.push_back(
          std::lower_bound(shard.prompts.begin(), shard.prompts.end(), end) -
          shard.prompts.begin());
    }
  }
}

std::int64_t count_prompts(std::span<const PromptShard> shards) {
  std::int64_t prompts = 0;
  for (const PromptShard& shard : shards)
    prompts += static_cast<std::int64_t>(shard.prompts.size());
  return prompts;
}

}  // namespace rl
