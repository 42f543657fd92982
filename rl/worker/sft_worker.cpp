#include "rl/worker/sft_worker.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "rl/model/bf16_products.h"
#include "rl/model/guarded.h"
#include "rl/model/recompute_layers.h"
#include "rl/model/save.h"
#include "rl/model/target_logits.h"
#include "rl/model/transformer.h"
#include "rl/worker/update_loop.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr std::int64_t kLogitRows = 256;  // of [rows, V] at a time

}  // namespace

Result<std::optional<TeacherOptions>> TeacherOptions::from_config(const Config& config) {
  ConfigReader read(config);
  TeacherOptions options;
  const std::optional<std::string> model = read.find_string("distillation.teacher.path");
  options.loss = {.temperature = read.get_float("distillation.temperature"),
                  .weight = read.get_float("distillation.weight"),
                  .top_k = read.get_int("distillation.topk")};
  if (!read.status().ok()) return read.status();
  if (!model || model->empty()) return std::optional<TeacherOptions>();
  options.model = *model;
  return std::optional(options);
}

Result<std::unique_ptr<SftWorker>> SftWorker::create(const SftWorkerOptions& options,
                                                     std::unique_ptr<Communicator> communicator) {
  at::set_num_threads(options.threads);  // backward's matrix products
  Result<std::unique_ptr<Transformer>> model =
      Transformer::load(options.model, {.threads = options.threads, .device = options.device});
  if (!model.ok()) return model.status();
  if (options.adapter) {
    const Status used = use_adapter(**model, *options.adapter);
    if (!used.ok()) return used;
  }
  auto made = guarded<std::unique_ptr<SftWorker>>("gradients and optimizer", [&] {
    return std::unique_ptr<SftWorker>(
        new SftWorker(options, std::move(*model), std::move(communicator)));
  });
  if (!made.ok() || !options.teacher) return made;
  Result<std::unique_ptr<Transformer>> teacher = Transformer::load(
      options.teacher->model, {.threads = options.threads, .device = options.device});
  if (!teacher.ok()) return teacher.status().with_context("distillation.teacher.path");
  (*made)->teacher_ = std::move(*teacher);
  return made;
}

Status SftWorker::pass(const PackedBatch& packed, double scale, SupervisedSums& sums) {
  const Result<TokenLogprobs> outputs = learner_.model().token_logprobs(packed);
  if (!outputs.ok()) return outputs.status();
  const at::Tensor loss = -outputs->logprobs_N.sum();
  sums.loss += loss.item<double>();
  return scale > 0 ? backward(loss * scale) : Status();
}

// Logits of both models for some tokens at a time: of all of a pass they would be far larger than
// the pass. What the chunks give back to the student's last hidden states is collected there, and
// goes through its layers once.
Status SftWorker::pass_with_teacher(const PackedBatch& packed, double scale, SupervisedSums& sums) {
  const Result<at::Tensor> student = predicting_states(learner_.model(), packed);
  if (!student.ok()) return student.status();
  const Result<at::Tensor> teacher = predicting_states(*teacher_, packed);
  if (!teacher.ok()) return teacher.status().with_context("teacher");
  std::vector<std::int64_t> ids;
  for (const std::int64_t target : packed.targets)
    ids.push_back(packed.ids[static_cast<std::size_t>(target)]);
  const auto count = static_cast<std::int64_t>(ids.size());
  const at::Tensor targets_N1 =
      at::from_blob(ids.data(), {count, 1}, at::TensorOptions().dtype(at::kLong))
          .to(student->device());
  const at::Tensor states = student->detach().requires_grad_(scale > 0);
  std::vector<at::Tensor> chunks;  // sums of cross entropy and KL
  for (std::int64_t first = 0; first < count; first += kLogitRows) {
    const std::int64_t rows = std::min(kLogitRows, count - first);
    const Result<at::Tensor> own = state_logits(learner_.model(), states.narrow(0, first, rows));
    if (!own.ok()) return own.status();
    const Result<at::Tensor> given = state_logits(*teacher_, teacher->narrow(0, first, rows));
    if (!given.ok()) return given.status();
    // Of one family, vocabularies may be padded to different sizes: what lies behind is no token.
    const std::int64_t vocabulary = std::min(own->size(1), given->size(1));
    const at::Tensor cross_entropy_N =
        -at::log_softmax(*own, 1).gather(1, targets_N1.narrow(0, first, rows)).squeeze(1);
    const at::Tensor kl_N = distillation_kl(
        own->narrow(1, 0, vocabulary), given->narrow(1, 0, vocabulary), options_.teacher->loss);
    chunks.push_back(at::stack({cross_entropy_N.detach().sum(), kl_N.detach().sum()}));
    if (scale <= 0) continue;
    const Status status =
        backward(distillation_loss(cross_entropy_N, kl_N, options_.teacher->loss).sum() * scale);
    if (!status.ok()) return status;
  }
  // Read once a pass: each look at a device's numbers waits for all that was asked of it.
  const at::Tensor of_chunks = at::stack(chunks).to(at::kCPU);
  for (std::int64_t i = 0; i < of_chunks.size(0); ++i) {
    sums.loss += of_chunks[i][0].item<double>();
    sums.kl += of_chunks[i][1].item<double>();
  }
  return scale > 0 ? backward((*student * states.grad()).sum()) : Status();
}

Result<SupervisedSums> SftWorker::passes(const SupervisedBatch& batch, double scale) {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  const std::vector<std::int64_t> cuts =
      plan_micro_batches(sequence_lengths(batch), options_.micro_batch);
  const RecomputeLayers recompute(options_.recompute_layers);
  const Bf16Products bf16(options_.bf16);
  SupervisedSums sums{.loss = 0.0, .kl = 0.0, .tokens = batch.learned_tokens()};
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const PackedBatch packed = pack_supervised(batch, cuts[k], cuts[k + 1]);
    if (packed.targets.empty()) continue;
    const Status status =
        teacher_ ? pass_with_teacher(packed, scale, sums) : pass(packed, scale, sums);
    if (!status.ok()) return status;
  }
  return sums;
}

Result<Metrics> SftWorker::update(const SupervisedBatch& batch, std::int64_t tokens_total,
                                  double learning_rate) {
  if (tokens_total < 1) return runtime::invalid_argument("update: no tokens to learn");
  const double scale = 1.0 / static_cast<double>(tokens_total);
  const Result<SupervisedSums> sums = passes(batch, scale);
  if (!sums.ok()) return sums.status();
  const Result<OptimizerReport> report = learner_.apply(learning_rate);
  if (!report.ok()) return report.status();
  const double part = 1.0 / learner_.communicator().size();
  Metrics metrics{{"train/loss", sums->loss * scale},
                  {"train/grad_norm", report->grad_norm * part},
                  {"train/skipped_updates", report->skipped ? part : 0.0}};
  if (!teacher_) return metrics;
  const double weight = options_.teacher->loss.weight;
  metrics["train/ce_loss"] = sums->loss * scale;
  metrics["train/kl"] = sums->kl * scale;
  metrics["train/loss"] = (1.0 - weight) * sums->loss * scale + weight * sums->kl * scale;
  return metrics;
}

Result<SupervisedSums> SftWorker::evaluate(const SupervisedBatch& batch) {
  const at::NoGradGuard no_graph;
  return passes(batch, 0.0);
}

Result<std::vector<std::filesystem::path>> SftWorker::save(const std::filesystem::path& folder) {
  return with_tokenizer(learner_.save(folder), options_.model, folder / learner_.weights_folder());
}

Result<std::vector<std::filesystem::path>> SftWorker::write(
    const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const {
  return with_tokenizer(snapshot.write(folder), options_.model, folder / snapshot.weights_folder());
}

}  // namespace rl
