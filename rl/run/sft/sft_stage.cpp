#include "rl/run/sft/sft_stage.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rl/metrics/step_metrics.h"
#include "rl/run/teacher_vocabulary.h"
#include "rl/worker/toy_model.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::split;
using runtime::Status;

std::vector<std::vector<std::int64_t>> lengths_of(const SupervisedStep& step) {
  std::vector<std::vector<std::int64_t>> lengths;
  for (const SupervisedBatch& batch : step.batches) lengths.push_back(sequence_lengths(batch));
  return lengths;
}

std::vector<MicroBatchLimits> of_each(const MicroBatchLimits& limits, const SupervisedStep& step) {
  return std::vector(step.batches.size(), limits);
}

}  // namespace

Status SftStage::open(const StageSetup& setup) {
  setup_ = setup;
  const Result<EncodedRowsOptions> feed = feed_options(setup);
  if (!feed.ok()) return feed.status();
  if (const Status status = open_teacher(); !status.ok()) return status;
  return open_feeds(
      *feed, [&](Split split) { return supervised_dataset(setup.config, split); },
      [&](const DatasetOptions& rows, const EncodedRowsOptions& options) {
        return SupervisedFeed::create(setup.config, rows, options);
      });
}

Status SftStage::open_teacher() {
  const Result<std::optional<TeacherOptions>> options = TeacherOptions::from_config(setup_.config);
  if (!options.ok()) return options.status();
  if (!*options) return {};
  Result<std::filesystem::path> teacher =
      resolve_model(setup_.config, "distillation.teacher.path", setup_.options.seed);
  if (!teacher.ok()) return teacher.status();
  if (const Status same = check_same_vocabulary(setup_.model, *teacher); !same.ok())
    return same.with_context("distillation.teacher.path");
  teacher_ = std::move(*teacher);
  return {};
}

std::vector<std::filesystem::path> SftStage::frozen_models() const {
  return teacher_.empty() ? std::vector<std::filesystem::path>{}
                          : std::vector<std::filesystem::path>{teacher_};
}

Status SftStage::start(runtime::Runtime& runtime, const StageSetup& setup,
                       const WorkerSlots& slots) {
  WorkerSpec spec = setup.spec("sft", slots);
  if (!teacher_.empty()) {
    nlohmann::ordered_json config = setup.config.to_json();
    config["distillation"]["teacher"]["path"] =
        teacher_.string();  // what the hub's name stands for
    spec.config = setup.config.with_tree(std::move(config)).serialize();
  }
  return start_workers(runtime, slots, spec);
}

Result<Metrics> SftStage::step(double learning_rate) {
  std::vector<SupervisedPlan> plans;
  for (LearningPasses& passes : plan_learning(
           lengths_of(batch_), of_each(setup_.options.micro_batch, batch_), batch_.leaves))
    plans.push_back({batch_.learned_tokens, learning_rate, std::move(passes.micro_batches),
                     std::move(passes.rounds)});
  const auto reports = workers_.fetch(&SftActor::update, split(batch_.batches), split(plans));
  if (!reports.ok()) return reports.status();
  Metrics metrics = sum_metrics(*reports);
  metrics["train/global_tokens"] = static_cast<double>(batch_.tokens);
  metrics["train/learned_tokens"] = static_cast<double>(batch_.learned_tokens);
  return metrics;
}

Result<Metrics> SftStage::validate() {
  const Result<std::vector<SupervisedStep>> steps = validation_steps();
  if (!steps.ok()) return steps.status();
  SupervisedSums sums;
  for (const SupervisedStep& step : *steps) {
    const auto parts = workers_.fetch(
        &SftActor::evaluate, split(step.batches),
        split(plan_rounds(lengths_of(step), of_each(setup_.options.micro_batch, step))));
    if (!parts.ok()) return parts.status();
    for (const SupervisedSums& part : *parts) {
      sums.loss += part.loss;
      sums.kl += part.kl;
      sums.tokens += part.tokens;
    }
  }
  const auto mean = [&](double sum) {
    return sums.tokens > 0 ? sum / static_cast<double>(sums.tokens)
                           : std::numeric_limits<double>::quiet_NaN();
  };
  Metrics metrics{{"val/loss", mean(sums.loss)}};
  if (!teacher_.empty()) metrics["val/kl"] = mean(sums.kl);
  return metrics;
}

}  // namespace rl
