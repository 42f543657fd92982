#include "rl/stage/sft_stage.h"

#include <limits>
#include <utility>

#include "rl/model/model_config.h"
#include "rl/train/step_metrics.h"

namespace rl {

using runtime::Result;
using runtime::split;
using runtime::Status;

Status SftStage::open(const StageSetup& setup) {
  setup_ = setup;
  const Result<ModelConfig> model = ModelConfig::load(setup.model);
  if (!model.ok()) return model.status();
  SupervisedFeedOptions options{.model = setup.model,
                                .context = model->max_position_embeddings,
                                .batch_rows = setup.options.batch_rows,
                                .workers = setup.workers,
                                .shuffle = setup.options.shuffle,
                                .shuffle_seed = setup.options.shuffle_seed};
  const Result<std::optional<DatasetOptions>> train = supervised_dataset(setup.config, Split::kTrain);
  if (!train.ok()) return train.status();
  Result<std::unique_ptr<SupervisedFeed>> feed = SupervisedFeed::create(setup.config, **train, options);
  if (!feed.ok()) return feed.status();
  feed_ = std::move(*feed);

  const Result<std::optional<DatasetOptions>> validation = supervised_dataset(setup.config, Split::kValidation);
  if (!validation.ok()) return validation.status();
  if (!*validation) return {};
  options.batch_rows = 1;  // any number of rows will do
  feed = SupervisedFeed::create(setup.config, **validation, options);
  if (!feed.ok()) return feed.status().with_context("validation data");
  validation_feed_ = std::move(*feed);
  return {};
}

Status SftStage::start(runtime::Runtime& runtime, const WorkerSlots& slots) {
  runtime_ = &runtime;
  auto workers = WorkerGroup<SftActor>::spawn(runtime, slots, /*reserves=*/true, setup_.spec("sft", slots));
  if (!workers.ok()) return workers.status();
  workers_ = std::move(*workers);
  return {};
}

Result<Metrics> SftStage::step(double learning_rate) {
  const Result<SupervisedStep> step = feed_->next();
  if (!step.ok()) return step.status();
  const auto reports = workers_.fetch(&SftActor::update, split(step->batches), step->learned_tokens, learning_rate);
  if (!reports.ok()) return reports.status();
  Metrics metrics = sum_metrics(*reports);
  metrics["train/global_tokens"] = static_cast<double>(step->tokens);
  metrics["train/learned_tokens"] = static_cast<double>(step->learned_tokens);
  return metrics;
}

Result<Metrics> SftStage::validate() {
  const Result<std::vector<SupervisedStep>> steps = validation_feed_->all(setup_.options.batch_rows);
  if (!steps.ok()) return steps.status();
  SupervisedSums sums;
  for (const SupervisedStep& step : *steps) {
    const auto parts = workers_.fetch(&SftActor::evaluate, split(step.batches));
    if (!parts.ok()) return parts.status();
    for (const SupervisedSums& part : *parts) {
      sums.loss += part.loss;
      sums.tokens += part.tokens;
    }
  }
  return Metrics{{"val/loss", sums.tokens > 0 ? sums.loss / static_cast<double>(sums.tokens) : std::numeric_limits<double>::quiet_NaN()}};
}

Result<std::vector<std::string>> SftStage::save(const std::filesystem::path& folder) {
  return runtime_->get(workers_.leader().call(&SftActor::save, folder.string()));
}

Status SftStage::load(const std::filesystem::path& folder) { return workers_.fetch(&SftActor::load, folder.string()); }

}  // namespace rl
