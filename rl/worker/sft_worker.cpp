#include "rl/worker/sft_worker.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "rl/model/save.h"
#include "rl/model/transformer.h"
#include "rl/worker/update_loop.h"

namespace rl {

using runtime::Result;
using runtime::Status;

Result<std::unique_ptr<SftWorker>> SftWorker::create(const SftWorkerOptions& options, std::unique_ptr<Communicator> communicator) {
  at::set_num_threads(options.threads);  // backward's matrix products
  Result<std::unique_ptr<Transformer>> model = Transformer::load(options.model, {.threads = options.threads});
  if (!model.ok()) return model.status();
  if (options.adapter) {
    const Status used = use_adapter(**model, *options.adapter);
    if (!used.ok()) return used;
  }
  return std::unique_ptr<SftWorker>(new SftWorker(options, std::move(*model), std::move(communicator)));
}

Result<Metrics> SftWorker::update(const SupervisedBatch& batch, std::int64_t tokens_total, double learning_rate) {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  if (tokens_total < 1) return runtime::invalid_argument("update: no tokens to learn");
  const std::vector<std::int64_t> cuts = plan_micro_batches(sequence_lengths(batch), options_.micro_batch);
  double loss_sum = 0.0;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const PackedBatch packed = pack_supervised(batch, cuts[k], cuts[k + 1]);
    if (packed.targets.empty()) continue;
    const Result<TokenLogprobs> outputs = learner_.model().token_logprobs(packed);
    if (!outputs.ok()) return outputs.status();
    const at::Tensor loss = -outputs->logprobs_N.sum() / static_cast<double>(tokens_total);
    if (const Status status = backward(loss); !status.ok()) return status;
    loss_sum += loss.item<double>();
  }
  const Result<OptimizerReport> report = learner_.apply(learning_rate);
  if (!report.ok()) return report.status();
  const double part = 1.0 / learner_.communicator().size();
  return Metrics{{"train/loss", loss_sum}, {"train/grad_norm", report->grad_norm * part}, {"train/skipped_updates", report->skipped ? part : 0.0}};
}

Result<SupervisedSums> SftWorker::evaluate(const SupervisedBatch& batch) {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  const at::NoGradGuard no_graph;
  const std::vector<std::int64_t> cuts = plan_micro_batches(sequence_lengths(batch), options_.micro_batch);
  SupervisedSums sums{.loss = 0.0, .tokens = batch.learned_tokens()};
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const PackedBatch packed = pack_supervised(batch, cuts[k], cuts[k + 1]);
    if (packed.targets.empty()) continue;
    const Result<TokenLogprobs> outputs = learner_.model().token_logprobs(packed);
    if (!outputs.ok()) return outputs.status();
    sums.loss -= outputs->logprobs_N.sum().item<double>();
  }
  return sums;
}

Result<std::vector<std::filesystem::path>> SftWorker::save(const std::filesystem::path& folder) {
  Result<std::vector<std::filesystem::path>> files = learner_.save(folder);
  if (!files.ok()) return files.status();
  const Status status = save_tokenizer(options_.model, folder / learner_.weights_folder());
  if (!status.ok()) return status;
  return files;
}

}  // namespace rl
