#include "rl/worker/streamed_passes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "rl/model/autograd.h"
#include "rl/model/guarded.h"
#include "rl/model/tensor_list.h"
#include "rl/worker/output_gradients.h"
#include "rl/worker/shared_pass.h"
#include "runtime/core/thread.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// What a pass gives, as the ranks send it.
std::vector<at::Tensor> listed(const Outputs& outputs) {
  std::vector<at::Tensor> list = {outputs.logprobs.logprobs_N, outputs.logprobs.entropy_N,
                                  outputs.logprobs.squares_N, outputs.of_logits_NK};
  list.insert(list.end(), outputs.heads.begin(), outputs.heads.end());
  return list;
}

Result<Outputs> unlisted(const Result<std::vector<at::Tensor>>& list) {
  if (!list.ok()) return list.status();
  if (list->size() < 4) return runtime::internal_error("outputs of a pass that are cut off");
  Outputs outputs;
  outputs.logprobs = {(*list)[0], (*list)[1], (*list)[2]};
  outputs.of_logits_NK = (*list)[3];
  outputs.heads.assign(list->begin() + 4, list->end());
  return outputs;
}

Status send(PeerMessages& links, int peer, const std::vector<at::Tensor>& tensors,
            std::string_view what) {
  const auto bytes = std::make_shared<const std::vector<std::byte>>(encode_tensors(tensors));
  return links.send(peer, /*channel=*/0, *bytes, bytes, what);
}

}  // namespace

StreamedPasses::StreamedPasses(const Transformer& model, const PassOptions& options, int turn)
    : model_(model), options_(options), stream_(*model.stream()), turn_(turn) {}

Status StreamedPasses::learn(std::span<const MicroBatch> micro_batches, const PassInput& input,
                             const PassLoss& loss, Metrics& metrics) {
  if (const Status packed = pack(micro_batches, input); !packed.ok()) return packed;
  const PipelineLinks& links = stream_.links();
  Status computed;
  runtime::Thread losses;
  if (is_own() && !stream_.is_last()) {
    auto started = runtime::Thread::start_real([&] {
      computed =
          guarded<void>("losses of a pipeline", [&] { return compute_losses(loss, metrics); });
      // Also what the main thread waits for: it returns with this rank's own failure.
      if (!computed.ok()) links.abort(computed);
    });
    if (!started.ok()) {
      links.abort(started.status());
      return started.status();
    }
    losses = std::move(*started);
  }
  const Status status =
      guarded<void>("passes of a pipeline", [&] { return run(input, loss, metrics); });
  if (!status.ok()) links.abort(status);
  if (losses.joinable()) losses.join();
  if (status.ok() && computed.ok()) return {};
  (void)links.stages->flush();
  (void)links.losses->flush();
  if (!loss_failure_.ok()) return loss_failure_;
  return status.ok() ? computed : status;
}

// All ranks take part in each, so that it is done before stages go their own ways.
Status StreamedPasses::pack(std::span<const MicroBatch> micro_batches, const PassInput& input) {
  const SharedPass shared(model_, turn_);
  for (const MicroBatch& rows : micro_batches) {
    Result<PackedBatch> packed = shared.packed(rows, input);
    if (!packed.ok()) return packed.status();
    if (packed->ids.empty()) continue;
    passes_.push_back({rows, std::move(*packed), model_.dropout_passes().take(), {}});
  }
  return {};
}

Status StreamedPasses::run(const PassInput& input, const PassLoss& loss, Metrics& metrics) {
  const int stages = stream_.stages(), chunks = stream_.chunks();
  embedded_max_ = passes_not_through(stages, chunks, passes_.size());
  for (const PassStep& step : pass_schedule(stream_.stage(), stages, chunks, passes_.size())) {
    if (!step.is_backward) {
      if (const Status made = forward(step, input); !made.ok()) return made;
      continue;
    }
    if (const Status back = backward(step, loss, metrics); !back.ok()) return back;
    passes_[step.pass].made[static_cast<std::size_t>(step.chunk)] = {};
    if (step.chunk == 0) model_.end_pass();
  }
  settle_embeddings(0);
  const PipelineLinks& links = stream_.links();
  if (const Status sent = links.stages->flush(); !sent.ok()) return sent;
  return stream_.is_last() ? links.losses->flush() : Status();
}

Status StreamedPasses::forward(const PassStep& step, const PassInput& input) {
  Pass& pass = passes_[step.pass];
  const int chunk = stream_.chunk_at(step.chunk);
  model_.dropout_passes().follow(pass.dropped);
  Result<ChunkPass> made = model_.chunk_pass(chunk, pass.packed, input.wanted, options_);
  if (!made.ok()) return made.status();
  pass.made.push_back(std::move(*made));
  if (!stream_.ends_with(chunk) || is_own()) return {};
  return send(*stream_.links().losses, turn_, listed(pass.made.back().outputs),
              "outputs of a pass");
}

Status StreamedPasses::backward(const PassStep& step, const PassLoss& loss, Metrics& metrics) {
  Pass& pass = passes_[step.pass];
  const int chunk = stream_.chunk_at(step.chunk);
  if (stream_.ends_with(chunk)) return backward_of_last(pass, loss, metrics);
  const at::Tensor& hidden = pass.made[static_cast<std::size_t>(step.chunk)].hidden;
  const at::Tensor gradient = stream_.taken_back(chunk, hidden);
  if (gradient.defined())
    autograd::backward({hidden}, {gradient});
  else
    stream_.give_back_nothing(chunk, model_.has_tied_stages());
  return {};
}

Status StreamedPasses::backward_of_last(Pass& pass, const PassLoss& loss, Metrics& metrics) {
  const ChunkPass& made = pass.made.back();
  std::vector<at::Tensor> gradients;
  if (is_own()) {
    auto own = output_gradients(made.outputs, [&](const Outputs& outputs) {
      return loss(outputs, pass.rows, pass.packed, metrics);
    });
    if (!own.ok()) return own.status();
    gradients = std::move(*own);
  } else {
    const auto message =
        stream_.links().losses->receive(turn_, /*channel=*/0, "gradients of a loss");
    if (!message.ok()) return message.status();
    auto told = decode_tensors(*message);
    if (!told.ok()) return told.status();
    gradients = std::move(*told);
  }
  // Those before have sent theirs: the first stage began this pass after it had gone back through
  // them.
  settle_embeddings(embedded_max_[static_cast<std::size_t>(&pass - passes_.data())]);
  const bool learns = backward_from(made.outputs, gradients);
  if (!learns) stream_.give_back_nothing(stream_.chunk_at(stream_.chunks() - 1), /*tied=*/false);
  if (!model_.has_tied_stages()) return {};
  model_.wait_for_embeddings(*made.rows, learns);
  embedded_.push_back(made.rows);
  return {};
}

// Until at most N are missing.
void StreamedPasses::settle_embeddings(std::size_t waiting) {
  for (; embedded_.size() > waiting; embedded_.pop_front())
    model_.settle_embeddings(*embedded_.front());
}

Status StreamedPasses::compute_losses(const PassLoss& loss, Metrics& metrics) {
  for (const Pass& pass : passes_)
    if (const Status computed = compute_loss(pass, loss, metrics); !computed.ok()) return computed;
  return stream_.links().losses->flush();
}

Status StreamedPasses::compute_loss(const Pass& pass, const PassLoss& loss, Metrics& metrics) {
  const PipelineLinks& links = stream_.links();
  const int last = stream_.stages() - 1;
  const auto message = links.losses->receive(last, /*channel=*/0, "outputs of a pass");
  if (!message.ok()) return message.status();
  const Result<Outputs> outputs = unlisted(decode_tensors(*message));
  if (!outputs.ok()) return outputs.status();
  links.computes_loss = true;
  const auto gradients = output_gradients(
      *outputs, [&](const Outputs& own) { return loss(own, pass.rows, pass.packed, metrics); });
  links.computes_loss = false;
  if (!gradients.ok()) return loss_failure_ = gradients.status();
  return send(*links.losses, last, *gradients, "gradients of a loss");
}

}  // namespace rl
