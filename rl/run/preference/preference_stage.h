// The stages that learn from preferences: dpo and its like, kto, rm. They differ in the form of
// their rows and in PreferenceObjective.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rl/actor/preference_actor.h"
#include "rl/feed/preference_feed.h"
#include "rl/run/data_stage.h"

namespace rl {

/// Metrics have TRL's names below train/ and val/: rewards/chosen, rewards/accuracies,
/// logps/chosen, of a reward model accuracy and margin. A resource; one thread at a time.
class PreferenceStage : public DataStage {
 public:
  runtime::Status open(const StageSetup& setup) override;
  std::vector<std::filesystem::path> frozen_models() const override;
  std::int64_t batches_per_epoch() const override { return feed_->rows().batches_per_epoch(); }
  runtime::Result<std::string> first_row() const override;
  runtime::Status start(runtime::Runtime& runtime, const WorkerSlots& slots) override;
  std::vector<ProfiledGroup> profiled_groups() const override {
    return {profiled("worker", workers_)};
  }
  runtime::Status draw() override;
  runtime::Result<Metrics> step(double learning_rate) override;
  std::int64_t epoch() const override { return feed_->rows().epoch(); }
  bool validates() const override { return validation_feed_ != nullptr; }
  runtime::Result<Metrics> validate() override;
  nlohmann::json position() const override { return feed_->rows().position(); }
  runtime::Status resume(const nlohmann::json& position) override {
    return feed_->rows().resume(position);
  }
  runtime::Result<WriteState> state(bool beside) const override { return workers_.state(beside); }
  runtime::Status load(const std::filesystem::path& folder) override;

 private:
  std::vector<PreferencePasses> passes_of(const PreferenceStep& step) const;

  StageSetup setup_;
  bool pairs_ = true;                // or single responses
  std::filesystem::path reference_;  // empty where none is loaded
  std::unique_ptr<PreferenceFeed> feed_;
  std::unique_ptr<PreferenceFeed> validation_feed_;  // null without validation data
  PreferenceStep drawn_;
  WorkerGroup<PreferenceActor> workers_;
};

}  // namespace rl
