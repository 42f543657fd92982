#include "rl/worker/joint_pass.h"

#include <ATen/ops/zeros_like.h>

#include <cstddef>
#include <span>
#include <utility>

#include "rl/model/guarded.h"
#include "rl/model/pass_team.h"
#include "rl/model/tensor_list.h"
#include "rl/worker/shared_pass.h"
#include "rl/worker/value_bytes.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;
using runtime::Status;

bool JointPass::is_possible(const Transformer& model, const OutputOptions& wanted) {
  if (model.team() == nullptr || !model.used_adapter().empty()) return false;
  return !model.team()->sharing().deals_weights() && !wanted.states && !wanted.of_logits;
}

void JointPass::append(PackedBatch& all, const PackedBatch& part) {
  // Without lengths that angles go by a sequence's own is meant.
  const auto own_lengths = [](const PackedBatch& of) {
    std::vector<std::int64_t> lengths;
    for (std::size_t b = 1; b < of.cu_seqlens.size(); ++b)
      lengths.push_back(of.cu_seqlens[b] - of.cu_seqlens[b - 1]);
    return lengths;
  };
  if (!all.rope_lengths.empty() || !part.rope_lengths.empty()) {
    if (all.rope_lengths.empty()) all.rope_lengths = own_lengths(all);
    const std::vector<std::int64_t> lengths =
        part.rope_lengths.empty() ? own_lengths(part) : part.rope_lengths;
    all.rope_lengths.insert(all.rope_lengths.end(), lengths.begin(), lengths.end());
  }
  const std::int64_t tokens = all.tokens();
  all.ids.insert(all.ids.end(), part.ids.begin(), part.ids.end());
  for (std::size_t b = 1; b < part.cu_seqlens.size(); ++b)
    all.cu_seqlens.push_back(tokens + part.cu_seqlens[b]);
  for (const std::int64_t target : part.targets) all.targets.push_back(tokens + target);
  all.share_beginnings = all.share_beginnings && part.share_beginnings;
  ends_.push_back({.tokens = all.tokens(),
                   .sequences = all.sequences(),
                   .targets = static_cast<std::int64_t>(all.targets.size())});
}

Result<PackedBatch> JointPass::packed(const MicroBatch& rows, const PassInput& input) {
  return guarded<PackedBatch>("the rows of a joint pass", [&]() -> Result<PackedBatch> {
    last_tokens_only_ = input.wanted.last_tokens_only;
    own_ = pack_unless_idle(rows, input);
    const std::vector<std::byte> bytes = encode_values(own_);
    PackedBatch all;
    ends_.clear();
    const PassTeam& team = *model_.team();
    for (int rank = 0; rank < team.size(); ++rank) {
      const std::vector<std::byte> told = team.from(rank, bytes, "rows of a pass");
      PackedBatch part;
      if (const Status status = decode_values(told, part); !status.ok()) return status;
      append(all, part);
    }
    return all;
  });
}

at::Tensor JointPass::rows_of(const at::Tensor& output, RowOf row, int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  const Extent begin = rank == 0 ? Extent() : ends_[at - 1], end = ends_[at];
  switch (row) {
    case RowOf::kTarget: return output.narrow(0, begin.targets, end.targets - begin.targets);
    case RowOf::kToken: return output.narrow(0, begin.tokens, end.tokens - begin.tokens);
    case RowOf::kSequence:
      return output.narrow(0, begin.sequences, end.sequences - begin.sequences);
  }
  runtime::check_failed(__FILE__, __LINE__, "no such row");
}

Outputs JointPass::part_of(const Outputs& outputs, int rank) const {
  Outputs part = outputs;
  for (at::Tensor* of_targets :
       {&part.logprobs.logprobs_N, &part.logprobs.entropy_N, &part.logprobs.squares_N})
    if (of_targets->defined()) *of_targets = rows_of(*of_targets, RowOf::kTarget, rank);
  for (at::Tensor& head : part.heads) head = rows_of(head, row_of_heads(), rank);
  return part;
}

std::vector<JointPass::RowOf> JointPass::rows_with_graph(const Outputs& outputs) const {
  Outputs with_graph = outputs;
  std::vector<RowOf> rows;
  for (const at::Tensor* output : outputs_with_graph(with_graph)) {
    const bool of_targets =
        output == &with_graph.logprobs.logprobs_N || output == &with_graph.logprobs.entropy_N;
    rows.push_back(of_targets ? RowOf::kTarget : row_of_heads());
  }
  return rows;
}

Status JointPass::backward(const Outputs& outputs, const LossOfOutputs& loss) const {
  return guarded<void>("backward pass", [&] { return back_together(outputs, loss); });
}

Status JointPass::back_together(const Outputs& outputs, const LossOfOutputs& loss) const {
  const PassTeam& team = *model_.team();
  std::vector<std::byte> bytes = encode_tensors({});
  if (!own_.ids.empty()) {
    const Result<std::vector<at::Tensor>> own =
        output_gradients(part_of(outputs, team.rank()), loss);
    if (!own.ok()) return own.status();
    bytes = encode_tensors(*own);
  }
  Outputs whole = outputs;
  const std::vector<at::Tensor*> learned = outputs_with_graph(whole);
  const std::vector<RowOf> rows = rows_with_graph(outputs);
  std::vector<at::Tensor> gradients(learned.size());
  for (int rank = 0; rank < team.size(); ++rank) {
    const Result<std::vector<at::Tensor>> theirs =
        decode_tensors(team.from(rank, bytes, "gradients of a loss"));
    if (!theirs.ok()) return theirs.status();
    CHECK(theirs->empty() || theirs->size() == learned.size());
    for (std::size_t i = 0; i < theirs->size(); ++i) {
      if (!(*theirs)[i].defined()) continue;
      if (!gradients[i].defined()) gradients[i] = at::zeros_like(learned[i]->detach());
      rows_of(gradients[i], rows[i], rank).copy_((*theirs)[i]);
    }
  }
  return backward_from(outputs, gradients) ? Status() : model_.idle_backward();
}

}  // namespace rl
