// FeedStage: the base of stages that take their steps from a feed, for one group of workers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/actor/worker_group.h"
#include "rl/data/dataset.h"
#include "rl/feed/data_warnings.h"
#include "rl/feed/encoded_rows.h"
#include "rl/run/data_stage.h"
#include "runtime/core/result.h"

namespace rl {

/// What the feed of a stage needs to know of the model and the steps. Errors: those of
/// ModelConfig::load.
runtime::Result<EncodedRowsOptions> feed_options(const StageSetup& setup);

/// `Feed` makes the steps that the members of `Group`, which are `Actor`s, compute.
template <class Feed, class Actor, class Group = WorkerGroup<Actor>>
class FeedStage : public DataStage {
 public:
  using Step = typename decltype(std::declval<Feed&>().next())::value_type;

  std::vector<std::string> warnings() const override {
    std::vector<std::string> all;
    for (const Feed* feed : {feed_.get(), validation_feed_.get()}) {
      if (feed == nullptr) continue;
      add_data_warnings(feed->rows().dataset(),
                        DataWarningOptions::of_stage(setup_.config, feed->tokenizer()), all);
      add_warnings(feed->unwritten_fields(), all);
    }
    return all;
  }
  std::int64_t batches_per_epoch() const override { return feed_->rows().batches_per_epoch(); }
  std::vector<ProfiledGroup> profiled_groups() const override {
    return {profiled("worker", workers_)};
  }
  runtime::Status next_batch() override {
    runtime::Result<Step> step = feed_->next();
    if (step.ok()) batch_ = std::move(*step);
    return step.status();
  }
  std::int64_t epoch() const override { return feed_->rows().epoch(); }
  bool validates() const override { return validation_feed_ != nullptr; }
  nlohmann::json position() const override { return feed_->rows().position(); }
  runtime::Status resume(const nlohmann::json& position) override {
    return feed_->rows().resume(position);
  }
  runtime::Result<WriteState> state(bool async) const override { return workers_.state(async); }
  runtime::Status load(const std::filesystem::path& folder) override {
    return workers_.fetch(&Actor::load, folder.string());
  }

 protected:
  /// `rows` says which a split has; `make` makes their feed.
  template <class Rows, class Make>
  runtime::Status open_feeds(EncodedRowsOptions options, const Rows& rows, const Make& make) {
    const runtime::Result<std::optional<DatasetOptions>> train = rows(Split::kTrain);
    if (!train.ok()) return train.status();
    runtime::Result<std::unique_ptr<Feed>> feed = make(**train, options);
    if (!feed.ok()) return feed.status();
    feed_ = std::move(*feed);

    const runtime::Result<std::optional<DatasetOptions>> validation = rows(Split::kValidation);
    if (!validation.ok()) return validation.status();
    if (!*validation) return {};
    options.batch_rows = 1;  // any number of rows will do
    feed = make(**validation, options);
    if (!feed.ok()) return feed.status().with_context("validation data");
    validation_feed_ = std::move(*feed);
    return {};
  }

  /// All validation rows, in steps of as many as are trained on.
  runtime::Result<std::vector<Step>> validation_steps() const {
    return validation_feed_->all(setup_.options.batch_rows);
  }

  runtime::Status start_workers(runtime::Runtime& runtime, const WorkerSlots& slots,
                                const WorkerSpec& spec) {
    auto workers = Group::spawn(runtime, slots, /*reserves=*/true, spec);
    if (!workers.ok()) return workers.status();
    workers_ = std::move(*workers);
    return {};
  }

  StageSetup setup_;  // of open()
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<Feed> validation_feed_;  // null without validation data
  Step batch_;
  Group workers_;
};

}  // namespace rl
