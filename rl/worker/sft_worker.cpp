#include "rl/worker/sft_worker.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "rl/model/guarded.h"
#include "rl/model/save.h"
#include "rl/model/transformer.h"
#include "rl/worker/gradient_rounds.h"
#include "rl/worker/shared_pass.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

at::Tensor target_ids(const PackedBatch& packed, at::Device device) {
  std::vector<std::int64_t> ids;
  for (const std::int64_t target : packed.targets)
    ids.push_back(packed.ids[static_cast<std::size_t>(target)]);
  const auto count = static_cast<std::int64_t>(ids.size());
  return at::from_blob(ids.data(), {count, 1}, at::TensorOptions().dtype(at::kLong))
      .to(device, at::kLong, /*non_blocking=*/false, /*copy=*/true);
}

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
                                                     TrainingRanks ranks) {
  at::set_num_threads(options.threads);  // backward's matrix products
  Result<std::unique_ptr<Transformer>> model =
      Transformer::load(options.model, {.threads = options.threads,
                                        .device = options.device,
                                        .part = weights_needed(options.learner, ranks)});
  if (!model.ok()) return model.status();
  if (options.adapter) {
    const Status used = use_adapter(**model, *options.adapter);
    if (!used.ok()) return used;
  }
  auto made = guarded<std::unique_ptr<SftWorker>>("gradients and optimizer", [&] {
    return std::unique_ptr<SftWorker>(new SftWorker(options, std::move(*model), std::move(ranks)));
  });
  if (!made.ok() || !options.teacher) return made;
  Result<std::unique_ptr<Transformer>> teacher = Transformer::load(
      options.teacher->model, {.threads = options.threads, .device = options.device});
  if (!teacher.ok()) return teacher.status().with_context("distillation.teacher.path");
  (*made)->teacher_ = std::move(*teacher);
  (*made)->learner_.watch_passes_of(*(*made)->teacher_);
  return made;
}

PassInput SftWorker::input(const SupervisedBatch& batch) const {
  PassInput input{.pack = [&batch](const MicroBatch& rows) { return pack_supervised(batch, rows); },
                  .wanted = {}};
  if (!teacher_) {
    input.wanted.logprobs = LogprobOptions();
    return input;
  }
  // Texts to learn seldom begin alike, and what a row drops of an adapter must be its own.
  input.pack = [pack = std::move(input.pack)](const MicroBatch& rows) {
    PackedBatch packed = pack(rows);
    packed.share_beginnings = false;
    return packed;
  };
  if (learner_.model().team() == nullptr)
    input.wanted.states = true;
  else
    input.wanted.of_logits = [this](const PackedBatch& packed) { return teacher_losses(packed); };
  return input;
}

Result<at::Tensor> SftWorker::loss(const Outputs& outputs, const PackedBatch& packed, double scale,
                                   SupervisedSums& sums) const {
  if (outputs.of_logits_NK.defined()) return distilled_loss(outputs.of_logits_NK, scale, sums);
  if (teacher_) return distilled_loss(outputs.states_NH, packed, scale, sums);
  const at::Tensor loss = -outputs.logprobs.logprobs_N.sum();
  sums.loss += loss.item<double>();
  return loss * scale;
}

Result<at::Tensor> SftWorker::teacher_states(const PackedBatch& packed) const {
  at::Tensor states_NH;
  const MicroBatch all{0, packed.sequences()};
  const PassInput input{.pack = [&](const MicroBatch&) { return packed; },
                        .wanted = {.states = true}};
  const Status scored =
      Passes(*teacher_, pass_options())
          .score({&all, 1}, input,
                 [&](const Outputs& outputs, const MicroBatch&, const PackedBatch&) -> Status {
                   states_NH = outputs.states_NH;
                   return {};
                 });
  if (!scored.ok()) return scored.with_context("teacher");
  return states_NH;
}

std::pair<at::Tensor, at::Tensor> SftWorker::losses_of(const at::Tensor& own_NV,
                                                       const at::Tensor& teacher_NV,
                                                       const at::Tensor& targets_N1) const {
  // Of one family, vocabularies may be padded to different sizes: what lies behind is no token.
  const std::int64_t vocabulary = std::min(own_NV.size(1), teacher_NV.size(1));
  return {-at::log_softmax(own_NV, 1).gather(1, targets_N1).squeeze(1),
          distillation_kl(own_NV.narrow(1, 0, vocabulary), teacher_NV.narrow(1, 0, vocabulary),
                          options_.teacher->loss)};
}

// Of a team: each rank with some of the pass's logits goes through the teacher, too.
Result<OfLogits> SftWorker::teacher_losses(const PackedBatch& packed) const {
  const Result<at::Tensor> states = teacher_states(packed);
  if (!states.ok()) return states.status();
  return OfLogits([this, states_NH = *states, targets_N1 = target_ids(packed, at::kCPU)](
                      const at::Tensor& own_NV, std::int64_t first) {
    const std::int64_t rows = own_NV.size(0);
    const Result<at::Tensor> given =
        teacher_->state_logits(states_NH.narrow(0, first, rows), pass_options());
    throw_unless_ok(given.status());
    const auto [cross_entropy_N, kl_N] =
        losses_of(own_NV, *given, targets_N1.narrow(0, first, rows));
    return at::stack({cross_entropy_N, kl_N}, 1);
  });
}

at::Tensor SftWorker::distilled_loss(const at::Tensor& losses_N2, double scale,
                                     SupervisedSums& sums) const {
  const at::Tensor cross_entropy_N = losses_N2.select(1, 0), kl_N = losses_N2.select(1, 1);
  for (std::int64_t first = 0; first < losses_N2.size(0); first += kLogitRows) {
    const std::int64_t rows = std::min(kLogitRows, losses_N2.size(0) - first);
    const auto sum = [&](const at::Tensor& of_all) {
      return of_all.detach().narrow(0, first, rows).contiguous().sum().item<double>();
    };
    sums.loss += sum(cross_entropy_N);
    sums.kl += sum(kl_N);
  }
  if (scale <= 0) return {};
  return distillation_loss(cross_entropy_N, kl_N, options_.teacher->loss).sum() * scale;
}

// Logits of both models for some tokens at a time: of all of a pass they would be far larger than
// the pass. What the chunks give back to the student's last hidden states is collected there, and
// goes through its layers once.
Result<at::Tensor> SftWorker::distilled_loss(const at::Tensor& states_NH, const PackedBatch& packed,
                                             double scale, SupervisedSums& sums) const {
  const Result<at::Tensor> teacher = teacher_states(packed);
  if (!teacher.ok()) return teacher;
  const at::Tensor targets_N1 = target_ids(packed, states_NH.device());
  const std::int64_t count = targets_N1.size(0);
  const at::Tensor states = states_NH.detach().requires_grad_(scale > 0);
  const PassOptions how = pass_options();
  std::vector<at::Tensor> chunks;  // sums of cross entropy and KL
  for (std::int64_t first = 0; first < count; first += kLogitRows) {
    const std::int64_t rows = std::min(kLogitRows, count - first);
    const Result<at::Tensor> own =
        learner_.model().state_logits(states.narrow(0, first, rows), how);
    if (!own.ok()) return own;
    const Result<at::Tensor> given = teacher_->state_logits(teacher->narrow(0, first, rows), how);
    if (!given.ok()) return given;
    const auto [cross_entropy_N, kl_N] = losses_of(*own, *given, targets_N1.narrow(0, first, rows));
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
  return scale > 0 ? (states_NH * states.grad()).sum() : at::Tensor();
}

Result<Metrics> SftWorker::update(const SupervisedBatch& batch, const SupervisedPlan& plan) {
  if (plan.tokens_total < 1) return runtime::invalid_argument("update: no tokens to learn");
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  const auto micro_batches = passes_over({0, batch.rows()}, plan.micro_batches);
  if (!micro_batches.ok()) return micro_batches.status();
  const double scale = 1.0 / static_cast<double>(plan.tokens_total);
  SupervisedSums sums;
  Metrics metrics;
  const auto loss_of = [&](const Outputs& outputs, const MicroBatch&, const PackedBatch& packed,
                           Metrics&) { return loss(outputs, packed, scale, sums); };
  const Passes passes(learner_.model(), pass_options());
  const Status learned =
      learn_in_rounds(learner_, *micro_batches, plan.rounds, input(batch).wanted,
                      [&](std::span<const MicroBatch> of_round, int turn) {
                        return passes.learn(of_round, input(batch), loss_of, metrics, turn);
                      });
  if (!learned.ok()) return learned;
  const Result<OptimizerReport> report = learner_.apply(plan.learning_rate);
  if (!report.ok()) return report.status();
  const double part = learner_.ranks().share();
  metrics = {{"train/loss", sums.loss * scale},
             {"train/grad_norm", report->grad_norm * part},
             {"train/skipped_updates", report->skipped ? part : 0.0}};
  if (!teacher_) return metrics;
  const double weight = options_.teacher->loss.weight;
  metrics["train/ce_loss"] = sums.loss * scale;
  metrics["train/kl"] = sums.kl * scale;
  metrics["train/loss"] = (1.0 - weight) * sums.loss * scale + weight * sums.kl * scale;
  return metrics;
}

Result<SupervisedSums> SftWorker::evaluate(const SupervisedBatch& batch,
                                           std::span<const MicroBatch> planned) {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  const auto micro_batches = passes_over({0, batch.rows()}, planned);
  if (!micro_batches.ok()) return micro_batches.status();
  SupervisedSums sums{.loss = 0.0, .kl = 0.0, .tokens = batch.learned_tokens()};
  const Passes passes(learner_.model(), pass_options());
  const Status scored =
      passes.score(*micro_batches, input(batch),
                   [&](const Outputs& outputs, const MicroBatch&, const PackedBatch& packed) {
                     return loss(outputs, packed, 0.0, sums).status();
                   });
  if (!scored.ok()) return scored;
  return sums;
}

Result<std::vector<std::filesystem::path>> SftWorker::save(const std::filesystem::path& folder) {
  return with_tokenizer(learner_.save(folder), options_.model, folder / learner_.weights_folder());
}

Result<std::vector<std::filesystem::path>> SftWorker::write(
    const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const {
  return with_tokenizer(snapshot.write(folder), options_.model, folder / snapshot.weights_folder());
}

}  // namespace rl
