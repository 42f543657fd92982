#include "rl/model/experts_pass.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <cstddef>
#include <limits>
#include <tuple>

#include "rl/model/pass_team.h"

namespace rl {

using bound::Experts;

namespace {

// Rows that have come for a rank's experts: rank by rank, and of each rank expert by expert.
struct ArrivedRows {
  std::vector<std::int64_t> sizes;      // of each expert, of all ranks
  std::vector<std::int64_t> by_expert;  // where a row lies of those sorted by experts
  std::vector<std::int64_t> by_rank;    // and the other way round

  ArrivedRows(std::span<const ColumnCut> counts, std::span<const std::int64_t> of_ranks) {
    std::vector<std::int64_t> next;  // of each rank, the first of the expert at hand
    std::int64_t total = 0;
    for (const std::int64_t rows : of_ranks) {
      next.push_back(total);
      total += rows;
    }
    by_rank.resize(static_cast<std::size_t>(total));
    for (const ColumnCut& rows : counts) {
      sizes.push_back(rows.total());
      for (int rank = 0; rank < rows.ranks(); ++rank) {
        for (std::int64_t i = 0; i < rows.size(rank); ++i) {
          const std::int64_t at = next[static_cast<std::size_t>(rank)]++;
          by_rank[static_cast<std::size_t>(at)] = std::ssize(by_expert);
          by_expert.push_back(at);
        }
      }
    }
  }
};

}  // namespace

at::Tensor ExpertsPass::scores_of(const Experts& w, const at::Tensor& x) const {
  const at::Tensor logits = ops::linear(pass_, x, w.router, {.rows = rows_});
  // Not ATen's sigmoid: it computes the last few numbers of all rows by other code than the rest. A
  // row's bits would depend on the number of rows.
  return config_.moe->score == MoeConfig::Score::kSigmoid
             ? ops::activate(pass_, kernel::Activation::kSigmoid, logits, {})
             : at::softmax(logits, 1);
}

// Which experts each row takes, [T, k].
at::Tensor ExpertsPass::choose(const Experts& w, const at::Tensor& scores) const {
  const MoeConfig& moe = *config_.moe;
  at::Tensor choice = w.correction.defined() ? scores + w.correction : scores;
  if (moe.groups > 1) {
    // A group is as good as its two best.
    const std::int64_t size = moe.experts / moe.groups;
    const at::Tensor grouped = choice.view({choice.size(0), moe.groups, size});
    const at::Tensor best =
        std::get<1>(at::topk(std::get<0>(at::topk(grouped, 2, 2)).sum(2), moe.groups_per_token, 1));
    const at::Tensor open = at::zeros_like(grouped.select(2, 0)).scatter(1, best, 1.0).unsqueeze(2);
    choice = at::where(open == 0, -std::numeric_limits<float>::infinity(), grouped)
                 .view({choice.size(0), moe.experts});
  }
  return std::get<1>(at::topk(choice, moe.experts_per_token, 1));
}

at::Tensor ExpertsPass::operator()(const Experts& w, const at::Tensor& x) const {
  const MoeConfig& moe = *config_.moe;
  const std::int64_t rows = x.size(0);
  const at::Tensor scores = scores_of(w, x);
  at::Tensor chosen;
  {
    c10::AutoGradMode off(false);
    chosen = choose(w, scores);
  }
  at::Tensor shares = scores.gather(1, chosen);
  if (moe.normalized) shares = shares / (shares.sum(1, /*keepdim=*/true) + 1e-20);
  if (moe.scaling != 1.0) shares = shares * moe.scaling;

  // Rows go to their experts, expert by expert, and come back in the order of each row's choices.
  const at::Tensor on_host = chosen.cpu().contiguous();
  const std::int64_t* expert_of = on_host.const_data_ptr<std::int64_t>();
  Takers takers(w.experts.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t slot = 0; slot < moe.experts_per_token; ++slot)
      takers[static_cast<std::size_t>(expert_of[row * moe.experts_per_token + slot])].push_back(
          row);
  }
  const at::Tensor parts = deals_experts() ? by_owners(w, x, takers) : by_experts(w, x, takers);
  std::vector<std::int64_t> next;  // where an expert's next row is among all parts
  std::int64_t total = 0;
  for (const std::vector<std::int64_t>& of_expert : takers) {
    next.push_back(total);
    total += std::ssize(of_expert);
  }
  std::vector<std::int64_t> back;
  back.reserve(static_cast<std::size_t>(total));
  for (std::int64_t i = 0; i < rows * moe.experts_per_token; ++i)
    back.push_back(next[static_cast<std::size_t>(expert_of[i])]++);
  const at::Tensor outputs =
      ops::select_rows(parts, back).view({rows, moe.experts_per_token, x.size(1)});
  at::Tensor y = (outputs * shares.unsqueeze(2)).sum(1);
  return w.shared ? ops::add(pass_, y, project_.mlp(config_.activation, x, *w.shared)) : y;
}

// How many of the pass's rows take each expert, on each rank of a team.
std::vector<ColumnCut> ExpertsPass::counted(const Takers& takers) const {
  std::vector<std::int64_t> counts;
  for (const std::vector<std::int64_t>& rows : takers) counts.push_back(std::ssize(rows));
  return pass_.team->row_cuts(counts, "rows of experts");
}

// What each expert gives for its rows, expert by expert.
at::Tensor ExpertsPass::by_experts(const Experts& w, const at::Tensor& x,
                                   const Takers& takers) const {
  std::vector<Projector> projectors;
  if (rows_) {
    for (const ColumnCut& cut : counted(takers))
      projectors.push_back(project_.with(std::make_shared<const ColumnCut>(cut)));
  }
  std::vector<at::Tensor> parts;
  for (std::size_t expert = 0; expert < w.experts.size(); ++expert) {
    const Projector& project = projectors.empty() ? project_ : projectors[expert];
    if (!project.any(takers[expert].size())) continue;
    parts.push_back(
        project.mlp(config_.activation, ops::select_rows(x, takers[expert]), w.experts[expert]));
  }
  return at::cat(parts);
}

bool ExpertsPass::deals_experts() const {
  return pass_.team != nullptr && pass_.team->cut() == PassCut::kRowsAndExperts;
}

// The same where each expert is on one rank: rows go there, and what it gives comes back.
at::Tensor ExpertsPass::by_owners(const Experts& w, const at::Tensor& x,
                                  const Takers& takers) const {
  const PassTeam& team = *pass_.team;
  const std::vector<ColumnCut> counts = counted(takers);
  const ColumnCut owned(std::ssize(w.experts), 1, team.size());
  std::vector<at::Tensor> own;
  std::vector<std::int64_t> sent, received;
  for (int peer = 0; peer < team.size(); ++peer) {
    sent.push_back(0);
    for (std::int64_t e = owned.first(peer); e < owned.first(peer) + owned.size(peer); ++e) {
      const auto expert = static_cast<std::size_t>(e);
      if (counts[expert].total() > 0) own.push_back(ops::select_rows(x, takers[expert]));
      sent.back() += std::ssize(takers[expert]);
    }
    received.push_back(0);
    for (const ColumnCut& rows : owned_counts(counts, owned)) received.back() += rows.size(peer);
  }
  const at::Tensor there = ops::exchanged_rows(pass_, at::cat(own), sent, received);
  const ArrivedRows rows(owned_counts(counts, owned), received);
  const at::Tensor sorted = ops::select_rows(there, rows.by_expert);
  std::vector<at::Tensor> parts;
  const std::vector<at::Tensor> inputs = sorted.split_with_sizes(rows.sizes);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (rows.sizes[i] == 0) continue;
    const auto expert = static_cast<std::size_t>(owned.first(team.rank())) + i;
    parts.push_back(project_.with(nullptr).mlp(config_.activation, inputs[i], w.experts[expert]));
  }
  const at::Tensor outputs = parts.empty() ? sorted : at::cat(parts);
  return ops::exchanged_rows(pass_, ops::select_rows(outputs, rows.by_rank), received, sent);
}

// The counts of this rank's experts.
std::span<const ColumnCut> ExpertsPass::owned_counts(std::span<const ColumnCut> counts,
                                                     const ColumnCut& owned) const {
  const int rank = pass_.team->rank();
  return counts.subspan(static_cast<std::size_t>(owned.first(rank)),
                        static_cast<std::size_t>(owned.size(rank)));
}

}  // namespace rl
