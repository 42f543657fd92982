#include "rl/run/preference/preference_stage.h"

#include <utility>

#include "rl/metrics/step_metrics.h"
#include "rl/run/teacher_vocabulary.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::split;
using runtime::Status;

// The sum of the workers' parts, below train/ or val/.
Metrics below(const std::string& section, const std::vector<Metrics>& parts) {
  Metrics metrics;
  for (const auto& [name, value] : sum_metrics(parts))
    metrics[name.starts_with("perf/") ? name : section + name] = value;
  return metrics;
}

}  // namespace

Status PreferenceStage::open(const StageSetup& setup) {
  setup_ = setup;
  const Result<PreferenceObjective> objective = PreferenceObjective::from_config(setup.config);
  if (!objective.ok()) return objective.status();
  if (objective->is_reward_model() && setup.options.adapter)
    return runtime::unimplemented(
        "starling rm trains all weights: an adapter would leave the reward's head as it began; set "
        "model.lora_rank=0");
  pairs_ = objective->is_pairs();
  const PreferenceForm form = pairs_ ? PreferenceForm::kPairs : PreferenceForm::kSingles;
  if (form == PreferenceForm::kSingles && setup.options.batch_rows < 2) {
    return runtime::invalid_argument(
        "data.train_batch_size: starling kto estimates the divergence from responses to other "
        "prompts in the batch: set it to at least 2");
  }
  if (const Status found = find_reference(*objective); !found.ok()) return found;
  const Result<EncodedRowsOptions> feed = feed_options(setup);
  if (!feed.ok()) return feed.status();
  return open_feeds(
      *feed, [&](Split split) { return preference_dataset(setup.config, split, form); },
      [&](const DatasetOptions& rows, const EncodedRowsOptions& options) {
        return PreferenceFeed::create(setup.config, rows, form, options);
      });
}

Status PreferenceStage::find_reference(const PreferenceObjective& objective) {
  if (!objective.needs_reference()) return {};
  const Result<FrozenSharding> sharding =
      frozen_sharding_from_config(setup_.config, kStageReferenceRole);
  if (!sharding.ok()) return sharding.status();
  if (!setup_.options.adapter) reference_ = setup_.model;  // an adapter's is the model without it
  if (!setup_.config.find_string(kReferencePath).value_or(std::nullopt)) return {};
  Result<std::filesystem::path> reference =
      resolve_model(setup_.config, kReferencePath, setup_.options.seed);
  if (!reference.ok()) return reference.status();
  if (const Status reads = check_reads_vocabulary(setup_.model, *reference, "reference");
      !reads.ok())
    return reads.with_context(kReferencePath);
  reference_ = std::move(*reference);
  return {};
}

std::vector<std::filesystem::path> PreferenceStage::frozen_models() const {
  return reference_.empty() ? std::vector<std::filesystem::path>{}
                            : std::vector<std::filesystem::path>{reference_};
}

Result<std::string> PreferenceStage::first_row() const {
  Result<std::string> row = feed_->first_row();
  if (!row.ok()) return row;
  const Result<PreferenceObjective> objective = PreferenceObjective::from_config(setup_.config);
  if (!objective.ok()) return objective.status();
  return *row + (objective->is_reward_model()
                     ? "trained on: the reward that the last token of each response is given\n"
                     : "trained on: the tokens behind >; the prompt has no loss\n");
}

// Dropout of an adapter is of each sequence, so that no prompt is computed for two.
RowLengths PreferenceStage::row_lengths() const {
  const std::optional<AdapterOptions>& adapter = setup_.options.adapter;
  return feed_->row_lengths(/*shares_prompts=*/!adapter || adapter->lora.dropout == 0);
}

std::vector<PreferencePasses> PreferenceStage::passes_of(const PreferenceStep& step) const {
  return plan_preferences(step.batches, pairs_,
                          std::vector(step.batches.size(), setup_.options.micro_batch),
                          step.leaves);
}

Result<Metrics> PreferenceStage::step(double learning_rate) {
  const auto reports =
      workers_.fetch(&PreferenceActor::update, split(batch_.batches), split(passes_of(batch_)),
                     PreferenceTotals{batch_.rows, batch_.wanted}, learning_rate);
  if (!reports.ok()) return reports.status();
  Metrics metrics = below("train/", *reports);
  metrics["train/global_tokens"] = static_cast<double>(batch_.tokens);
  return metrics;
}

Result<Metrics> PreferenceStage::validate() {
  const Result<std::vector<PreferenceStep>> steps = validation_steps();
  if (!steps.ok()) return steps.status();
  PreferenceTotals totals;
  for (const PreferenceStep& step : *steps) {
    totals.rows += step.rows;
    totals.wanted += step.wanted;
  }
  std::vector<Metrics> parts;
  for (const PreferenceStep& step : *steps) {
    const auto reports = workers_.fetch(&PreferenceActor::evaluate, split(step.batches),
                                        split(passes_of(step)), totals, step.rows);
    if (!reports.ok()) return reports.status();
    parts.insert(parts.end(), reports->begin(), reports->end());
  }
  return below("val/", parts);
}

}  // namespace rl
