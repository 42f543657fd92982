#include "rl/worker/preference_worker.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <utility>

#include "rl/model/guarded.h"
#include "rl/model/head.h"
#include "rl/model/save.h"
#include "rl/worker/gradient_rounds.h"

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

// Without a graph, of all rows.
Result<at::Tensor> frozen_sums(const Passes& passes, const Ragged<std::int32_t>& prompts,
                               const Ragged<std::int32_t>& responses,
                               std::span<const MicroBatch> planned) {
  const auto micro_batches = passes_over({0, prompts.rows()}, planned);
  if (!micro_batches.ok()) return micro_batches.status();
  const PassInput input{
      .pack = [&](const MicroBatch& rows) { return pack_responses(prompts, responses, rows); },
      .wanted = {.logprobs = LogprobOptions()}};
  std::vector<at::Tensor> parts;
  const Status scored = passes.score(
      *micro_batches, input,
      [&](const Outputs& outputs, const MicroBatch&, const PackedBatch& packed) -> Status {
        parts.push_back(sequence_sums(outputs.logprobs.logprobs_N, packed));
        return {};
      });
  if (!scored.ok()) return scored;
  return parts.empty() ? at::empty({0}) : at::cat(parts);
}

at::Tensor token_counts(const Ragged<std::int32_t>& responses, const MicroBatch& rows) {
  std::vector<float> counts;
  for (std::int64_t row = rows.first; row < rows.last; ++row)
    counts.push_back(static_cast<float>(responses.row_size(row)));
  return at::tensor(counts);
}

Result<std::unique_ptr<Transformer>> load_model(const PreferenceWorkerOptions& options,
                                                const TrainingRanks& ranks) {
  const TransformerOptions how{.threads = options.threads,
                               .device = options.device,
                               .part = weights_needed(options.learner, ranks)};
  if (!options.objective.is_reward_model()) return Transformer::load(options.model, how);
  Result<ModelConfig> config = ModelConfig::load(options.model);
  if (!config.ok()) return config.status();
  if (!config->output_heads.empty() && config->task == ModelTask::kCausalLm) {
    return runtime::invalid_argument(
        options.model.string() +
        ": a model with heads in addition to its output layer cannot be made "
        "into a reward model; give another model.path");
  }
  return Transformer::load(with_task(std::move(*config), ModelTask::kSequenceClassification),
                           options.model, options.seed, how);
}

Result<std::unique_ptr<FrozenModel>> load_reference(const PreferenceWorkerOptions& options,
                                                    const TrainingRanks& ranks) {
  const FrozenSharding& sharding = options.reference_sharding;
  return FrozenModel::load(options.reference.empty() ? options.model : options.reference,
                           {.threads = options.threads, .device = options.device},
                           {sharding.shards ? ranks.all.get() : nullptr, sharding.shard_ranks});
}

}  // namespace

Result<std::unique_ptr<PreferenceWorker>> PreferenceWorker::create(
    const PreferenceWorkerOptions& options, TrainingRanks ranks) {
  at::set_num_threads(options.threads);  // backward's matrix products
  if (options.adapter && options.objective.is_reward_model())
    return runtime::unimplemented(
        "an adapter of a reward model would leave its head as it began: set model.lora_rank=0");
  Result<std::unique_ptr<Transformer>> model = load_model(options, ranks);
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
  std::unique_ptr<FrozenModel> reference;
  if (refers && (!options.adapter || !options.reference.empty())) {
    Result<std::unique_ptr<FrozenModel>> frozen = load_reference(options, ranks);
    if (!frozen.ok()) return frozen.status().with_context("the reference");
    if ((*frozen)->config().vocab_size != (*model)->config().vocab_size)
      return runtime::invalid_argument(
          "preference.reference_path: a model with another vocabulary than model.path");
    reference = std::move(*frozen);
  }
  return guarded<std::unique_ptr<PreferenceWorker>>("gradients and optimizer", [&] {
    std::unique_ptr<PreferenceWorker> worker(
        new PreferenceWorker(options, std::move(*model), std::move(reference), std::move(ranks)));
    if (worker->reference_ && !worker->reference_->is_shared())
      worker->learner_.watch_passes_of(worker->reference_->transformer());
    return worker;
  });
}

Status PreferenceWorker::check(const PreferenceBatch& batch, const PreferencePasses& passes,
                               const PreferenceTotals& totals) const {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  for (const auto* part : {&passes.rows, &passes.responses, &passes.others}) {
    if (const Status valid = passes_over({0, batch.rows()}, *part).status(); !valid.ok())
      return valid;
  }
  if (totals.rows < std::max<std::int64_t>(1, batch.rows()) || totals.wanted < batch.wanted_count())
    return runtime::invalid_argument("preferences: totals below the batch's own");
  if (batch.rows() > 0 && batch.is_pairs() != options_.objective.is_pairs())
    return runtime::invalid_argument(
        "preferences: pairs where single responses are learned, or the other way round");
  return {};
}

Result<PreferenceWorker::Reference> PreferenceWorker::refer(const PreferenceBatch& batch,
                                                            const PreferencePasses& passes) {
  if (!options_.objective.needs_reference()) return Reference{};
  Transformer& model = learner_.model();
  const std::string trained = model.used_adapter();
  if (reference_ == nullptr) {
    if (const Status base =
            model.use_adapter(model.adapter(kReferenceAdapter) != nullptr ? kReferenceAdapter : "");
        !base.ok())
      return base;
  }
  const Passes frozen(reference_ != nullptr ? reference_->transformer() : model, pass_options());
  Result<at::Tensor> responses_P =
      frozen_sums(frozen, batch.prompts, batch.responses, passes.responses);
  Result<at::Tensor> others_P =
      responses_P.ok() ? frozen_sums(frozen, batch.prompts, batch.others, passes.others)
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
                                            const PreferencePasses& passes,
                                            const at::Tensor& reference_P, std::int64_t rows) {
  const Result<at::Tensor> policy_P = frozen_sums(Passes(learner_.model(), pass_options()),
                                                  batch.prompts, batch.others, passes.others);
  if (!policy_P.ok()) return policy_P.status();
  std::array<double, 1> total{(*policy_P - reference_P).sum().item<double>()};
  if (const Status summed = learner_.ranks().sum(total); !summed.ok()) return summed;
  return std::max(0.0, total[0] / static_cast<double>(std::max<std::int64_t>(1, rows)));
}

PassInput PreferenceWorker::input(const PreferenceBatch& batch) const {
  const PreferenceObjective& objective = options_.objective;
  if (objective.is_reward_model()) {
    return {.pack =
                [&batch](const MicroBatch& rows) {
                  PackedBatch packed = pack_both(batch, rows);
                  packed.targets.clear();
                  return packed;
                },
            .wanted = {.heads = {learner_.model().config().output_heads.front().name},
                       .last_tokens_only = true}};
  }
  return {.pack =
              [&batch, pairs = objective.is_pairs()](const MicroBatch& rows) {
                return pairs ? pack_both(batch, rows)
                             : pack_responses(batch.prompts, batch.responses, rows);
              },
          .wanted = {.logprobs = LogprobOptions()}};
}

Result<at::Tensor> PreferenceWorker::loss(const PreferenceBatch& batch, const MicroBatch& rows,
                                          const Outputs& outputs, const PackedBatch& packed,
                                          const Reference& reference, double divergence,
                                          const PreferenceTotals& totals, Metrics& metrics) const {
  const PreferenceObjective& objective = options_.objective;
  if (objective.is_reward_model()) {
    const at::Tensor scores_P2 = outputs.heads.front().view({-1, 2});
    const std::vector<float> margins(batch.margins.begin() + rows.first,
                                     batch.margins.begin() + rows.last);
    return reward_objective(objective, scores_P2.select(1, 0), scores_P2.select(1, 1),
                            at::tensor(margins), totals, metrics);
  }
  const auto mine = [&](const at::Tensor& values_P) {
    return values_P.defined() ? values_P.slice(0, rows.first, rows.last) : values_P;
  };
  const at::Tensor sums = sequence_sums(outputs.logprobs.logprobs_N, packed);
  if (!objective.is_pairs()) {
    const std::vector<float> wanted(batch.wanted.begin() + rows.first,
                                    batch.wanted.begin() + rows.last);
    return single_objective(objective,
                            {.policy_P = sums,
                             .reference_P = mine(reference.responses_P),
                             .wanted_P = at::tensor(wanted),
                             .divergence = divergence},
                            totals, metrics);
  }
  const at::Tensor policy_P2 = sums.view({-1, 2});
  const PairInputs inputs{
      .policy = {policy_P2.select(1, 0), policy_P2.select(1, 1)},
      .reference = {mine(reference.responses_P), mine(reference.others_P)},
      .tokens = {token_counts(batch.responses, rows), token_counts(batch.others, rows)}};
  return pair_objective(objective, inputs, totals, metrics);
}

Result<Metrics> PreferenceWorker::run(const PreferenceBatch& batch, const PreferencePasses& planned,
                                      const PreferenceTotals& totals, std::int64_t batch_rows,
                                      bool learn) {
  const Result<Reference> reference = refer(batch, planned);
  if (!reference.ok()) return reference.status();
  double kl = 0.0;
  if (!options_.objective.is_pairs()) {
    const Result<double> estimate = divergence(batch, planned, reference->others_P, batch_rows);
    if (!estimate.ok()) return estimate.status();
    kl = *estimate;
  }
  const auto micro_batches = passes_over({0, batch.rows()}, planned.rows);
  if (!micro_batches.ok()) return micro_batches.status();
  Metrics metrics;
  const auto part = [&](const Outputs& outputs, const MicroBatch& rows, const PackedBatch& packed,
                        Metrics& sums) {
    return loss(batch, rows, outputs, packed, *reference, kl, totals, sums);
  };
  const Passes passes(learner_.model(), pass_options());
  const auto learn_round = [&](std::span<const MicroBatch> of_round, int turn) {
    return passes.learn(of_round, input(batch), part, metrics, turn);
  };
  const Status done = learn ? learn_in_rounds(learner_, *micro_batches, planned.rounds,
                                              input(batch).wanted, learn_round)
                            : passes.score(*micro_batches, input(batch),
                                           [&](const Outputs& outputs, const MicroBatch& rows,
                                               const PackedBatch& packed) {
                                             return part(outputs, rows, packed, metrics).status();
                                           });
  if (!done.ok()) return done;
  return metrics;
}

Result<Metrics> PreferenceWorker::update(const PreferenceBatch& batch,
                                         const PreferencePasses& passes,
                                         const PreferenceTotals& totals, double learning_rate) {
  if (const Status valid = check(batch, passes, totals); !valid.ok()) return valid;
  Result<Metrics> metrics = run(batch, passes, totals, totals.rows, /*learn=*/true);
  if (!metrics.ok()) return metrics;
  const Result<OptimizerReport> report = learner_.apply(learning_rate);
  if (!report.ok()) return report.status();
  const double part = learner_.ranks().share();
  (*metrics)["grad_norm"] = report->grad_norm * part;
  (*metrics)["skipped_updates"] = report->skipped ? part : 0.0;
  return metrics;
}

Result<Metrics> PreferenceWorker::evaluate(const PreferenceBatch& batch,
                                           const PreferencePasses& passes,
                                           const PreferenceTotals& totals,
                                           std::int64_t batch_rows) {
  if (const Status valid = check(batch, passes, totals); !valid.ok()) return valid;
  return run(batch, passes, totals, batch_rows, /*learn=*/false);
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
