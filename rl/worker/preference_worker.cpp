#include "rl/worker/preference_worker.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <utility>

#include "rl/model/bf16_products.h"
#include "rl/model/guarded.h"
#include "rl/model/head.h"
#include "rl/model/recompute_layers.h"
#include "rl/model/save.h"
#include "rl/worker/update_loop.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Of an adapter that training begins with: a second one that stays as it is.
constexpr const char* kReferenceAdapter = "reference";

// Sums over each sequence's targets, [B]. One by one, so that they have the same bits whatever they
// are packed with.
at::Tensor sequence_sums(const at::Tensor& logprobs_N, const PackedBatch& packed) {
  std::vector<at::Tensor> sums;
  std::int64_t begin = 0;
  for (std::int64_t b = 0; b < packed.sequences(); ++b) {
    std::int64_t end = begin;
    while (end < static_cast<std::int64_t>(packed.targets.size()) &&
           packed.targets[static_cast<std::size_t>(end)] <
               packed.cu_seqlens[static_cast<std::size_t>(b) + 1])
      ++end;
    sums.push_back(logprobs_N.slice(0, begin, end).sum());
    begin = end;
  }
  return at::stack(sums);
}

Result<at::Tensor> response_sums(const Transformer& model, const PackedBatch& packed) {
  const Result<TokenLogprobs> outputs = model.token_logprobs(packed);
  if (!outputs.ok()) return outputs.status();
  return sequence_sums(outputs->logprobs_N, packed);
}

// Without a graph, of all rows.
Result<at::Tensor> frozen_sums(const Transformer& model, const Ragged<std::int32_t>& prompts,
                               const Ragged<std::int32_t>& responses,
                               const MicroBatchLimits& limits) {
  const at::NoGradGuard no_graph;
  std::vector<std::int64_t> lengths;
  for (std::int64_t row = 0; row < prompts.rows(); ++row)
    lengths.push_back(prompts.row_size(row) + responses.row_size(row));
  const std::vector<std::int64_t> cuts = plan_micro_batches(lengths, limits);
  std::vector<at::Tensor> parts;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    Result<at::Tensor> sums =
        response_sums(model, pack_responses(prompts, responses, cuts[k], cuts[k + 1]));
    if (!sums.ok()) return sums.status();
    parts.push_back(std::move(*sums));
  }
  return parts.empty() ? at::empty({0}) : at::cat(parts);
}

at::Tensor token_counts(const Ragged<std::int32_t>& responses, std::int64_t first,
                        std::int64_t last) {
  std::vector<float> counts;
  for (std::int64_t row = first; row < last; ++row)
    counts.push_back(static_cast<float>(responses.row_size(row)));
  return at::tensor(counts);
}

Result<std::unique_ptr<Transformer>> load_model(const PreferenceWorkerOptions& options) {
  if (!options.objective.is_reward_model())
    return Transformer::load(options.model, {.threads = options.threads, .device = options.device});
  Result<ModelConfig> config = ModelConfig::load(options.model);
  if (!config.ok()) return config.status();
  if (!config->output_heads.empty() && config->task == ModelTask::kCausalLm) {
    return runtime::invalid_argument(options.model.string() +
                                     ": a model with heads beside its output layer cannot be made "
                                     "into a reward model; give another model.path");
  }
  return Transformer::load(with_task(std::move(*config), ModelTask::kSequenceClassification),
                           options.model, options.seed,
                           {.threads = options.threads, .device = options.device});
}

}  // namespace

Result<std::unique_ptr<PreferenceWorker>> PreferenceWorker::create(
    const PreferenceWorkerOptions& options, std::unique_ptr<Communicator> communicator) {
  at::set_num_threads(options.threads);  // backward's matrix products
  if (options.adapter && options.objective.is_reward_model())
    return runtime::unimplemented(
        "an adapter of a reward model would leave its head as it began: set model.lora_rank=0");
  Result<std::unique_ptr<Transformer>> model = load_model(options);
  if (!model.ok()) return model.status();
  const bool refers = options.objective.needs_reference();
  if (options.adapter) {
    if (refers && options.reference.empty() && !options.adapter->folder.empty()) {
      Result<LoraAdapter> begun = LoraAdapter::load((*model)->config(), options.adapter->folder);
      if (!begun.ok()) return begun.status();
      if (const Status added = (*model)->add_adapter(kReferenceAdapter, std::move(*begun));
          !added.ok())
        return added;
    }
    if (const Status used = use_adapter(**model, *options.adapter); !used.ok()) return used;
  }
  std::unique_ptr<Transformer> reference;
  if (refers && (!options.adapter || !options.reference.empty())) {
    Result<std::unique_ptr<Transformer>> frozen =
        Transformer::load(options.reference.empty() ? options.model : options.reference,
                          {.threads = options.threads, .device = options.device});
    if (!frozen.ok()) return frozen.status().with_context("the reference");
    if ((*frozen)->config().vocab_size != (*model)->config().vocab_size)
      return runtime::invalid_argument(
          "preference.reference_path: a model with another vocabulary than model.path");
    reference = std::move(*frozen);
  }
  return guarded<std::unique_ptr<PreferenceWorker>>("gradients and optimizer", [&] {
    return std::unique_ptr<PreferenceWorker>(new PreferenceWorker(
        options, std::move(*model), std::move(reference), std::move(communicator)));
  });
}

Status PreferenceWorker::check(const PreferenceBatch& batch, const PreferenceTotals& totals) const {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  if (totals.rows < std::max<std::int64_t>(1, batch.rows()) || totals.wanted < batch.wanted_count())
    return runtime::invalid_argument("preferences: totals below the batch's own");
  if (batch.rows() > 0 && batch.is_pairs() != options_.objective.is_pairs())
    return runtime::invalid_argument(
        "preferences: pairs where single responses are learned, or the other way round");
  return {};
}

Result<PreferenceWorker::Reference> PreferenceWorker::refer(const PreferenceBatch& batch) {
  if (!options_.objective.needs_reference()) return Reference{};
  Transformer& model = learner_.model();
  const std::string trained = model.used_adapter();
  if (reference_ == nullptr) {
    if (const Status base =
            model.use_adapter(model.adapter(kReferenceAdapter) != nullptr ? kReferenceAdapter : "");
        !base.ok())
      return base;
  }
  const Transformer& frozen = reference_ != nullptr ? *reference_ : model;
  Result<at::Tensor> responses_P =
      frozen_sums(frozen, batch.prompts, batch.responses, options_.micro_batch);
  Result<at::Tensor> others_P =
      responses_P.ok() ? frozen_sums(frozen, batch.prompts, batch.others, options_.micro_batch)
                       : responses_P;
  if (reference_ == nullptr) {
    if (const Status back = model.use_adapter(trained); !back.ok()) return back;
  }
  if (!others_P.ok()) return others_P.status();
  return Reference{std::move(*responses_P), std::move(*others_P)};
}

// How far the policy is from the reference, from responses to other prompts: sums of all workers,
// of all their rows.
Result<double> PreferenceWorker::divergence(const PreferenceBatch& batch,
                                            const at::Tensor& reference_P, std::int64_t rows) {
  const Result<at::Tensor> policy_P =
      frozen_sums(learner_.model(), batch.prompts, batch.others, options_.micro_batch);
  if (!policy_P.ok()) return policy_P.status();
  std::array<double, 1> total{(*policy_P - reference_P).sum().item<double>()};
  if (const Status reduced = learner_.communicator().all_reduce_sum(std::span<double>(total));
      !reduced.ok())
    return reduced;
  return std::max(0.0, total[0] / static_cast<double>(std::max<std::int64_t>(1, rows)));
}

Result<at::Tensor> PreferenceWorker::loss(const PreferenceBatch& batch, std::int64_t first,
                                          std::int64_t last, const Reference& reference,
                                          double divergence, const PreferenceTotals& totals,
                                          Metrics& metrics) {
  const PreferenceObjective& objective = options_.objective;
  if (objective.is_reward_model()) return reward_loss(batch, first, last, totals, metrics);
  const auto mine = [&](const at::Tensor& values_P) {
    return values_P.defined() ? values_P.slice(0, first, last) : values_P;
  };
  if (!objective.is_pairs()) {
    const Result<at::Tensor> policy_P = response_sums(
        learner_.model(), pack_responses(batch.prompts, batch.responses, first, last));
    if (!policy_P.ok()) return policy_P.status();
    const std::vector<float> wanted(batch.wanted.begin() + first, batch.wanted.begin() + last);
    return single_objective(objective,
                            {.policy_P = *policy_P,
                             .reference_P = mine(reference.responses_P),
                             .wanted_P = at::tensor(wanted),
                             .divergence = divergence},
                            totals, metrics);
  }
  const Result<at::Tensor> both = response_sums(learner_.model(), pack_both(batch, first, last));
  if (!both.ok()) return both.status();
  const at::Tensor policy_P2 = both->view({-1, 2});
  const PairInputs inputs{.policy = {policy_P2.select(1, 0), policy_P2.select(1, 1)},
                          .reference = {mine(reference.responses_P), mine(reference.others_P)},
                          .tokens = {token_counts(batch.responses, first, last),
                                     token_counts(batch.others, first, last)}};
  return pair_objective(objective, inputs, totals, metrics);
}

Result<at::Tensor> PreferenceWorker::reward_loss(const PreferenceBatch& batch, std::int64_t first,
                                                 std::int64_t last, const PreferenceTotals& totals,
                                                 Metrics& metrics) {
  PackedBatch packed = pack_both(batch, first, last);
  packed.targets.clear();
  const Result<Outputs> outputs = learner_.model().outputs(
      packed, {.logprobs = {},
               .heads = {learner_.model().config().output_heads.front().name},
               .last_tokens_only = true});
  if (!outputs.ok()) return outputs.status();
  const at::Tensor scores_P2 = outputs->heads.front().view({-1, 2});
  const std::vector<float> margins(batch.margins.begin() + first, batch.margins.begin() + last);
  return reward_objective(options_.objective, scores_P2.select(1, 0), scores_P2.select(1, 1),
                          at::tensor(margins), totals, metrics);
}

Result<Metrics> PreferenceWorker::pass(const PreferenceBatch& batch, const PreferenceTotals& totals,
                                       std::int64_t batch_rows, bool learn) {
  const RecomputeLayers recompute(options_.recompute_layers);
  const Bf16Products bf16(options_.bf16);
  const Result<Reference> reference = refer(batch);
  if (!reference.ok()) return reference.status();
  double kl = 0.0;
  if (!options_.objective.is_pairs()) {
    const Result<double> estimate = divergence(batch, reference->others_P, batch_rows);
    if (!estimate.ok()) return estimate.status();
    kl = *estimate;
  }
  Metrics metrics;
  const std::vector<std::int64_t> cuts =
      plan_micro_batches(row_lengths(batch, options_.objective.is_pairs()), options_.micro_batch);
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const Result<at::Tensor> part =
        loss(batch, cuts[k], cuts[k + 1], *reference, kl, totals, metrics);
    if (!part.ok()) return part.status();
    if (!learn) continue;
    if (const Status status = backward(*part); !status.ok()) return status;
  }
  return metrics;
}

Result<Metrics> PreferenceWorker::update(const PreferenceBatch& batch,
                                         const PreferenceTotals& totals, double learning_rate) {
  if (const Status valid = check(batch, totals); !valid.ok()) return valid;
  Result<Metrics> metrics = pass(batch, totals, totals.rows, /*learn=*/true);
  if (!metrics.ok()) return metrics;
  const Result<OptimizerReport> report = learner_.apply(learning_rate);
  if (!report.ok()) return report.status();
  const double part = 1.0 / learner_.communicator().size();
  (*metrics)["grad_norm"] = report->grad_norm * part;
  (*metrics)["skipped_updates"] = report->skipped ? part : 0.0;
  return metrics;
}

Result<Metrics> PreferenceWorker::evaluate(const PreferenceBatch& batch,
                                           const PreferenceTotals& totals,
                                           std::int64_t batch_rows) {
  if (const Status valid = check(batch, totals); !valid.ok()) return valid;
  const at::NoGradGuard no_graph;
  return pass(batch, totals, batch_rows, /*learn=*/false);
}

Result<std::vector<std::filesystem::path>> PreferenceWorker::save(
    const std::filesystem::path& folder) {
  return with_tokenizer(learner_.save(folder), options_.model, folder / learner_.weights_folder());
}

Result<std::vector<std::filesystem::path>> PreferenceWorker::write(
    const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const {
  return with_tokenizer(snapshot.write(folder), options_.model, folder / snapshot.weights_folder());
}

}  // namespace rl
