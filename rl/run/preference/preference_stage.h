// The stages that learn from preferences: dpo and its like, kto, rm. They differ in the form of
// their rows and in PreferenceObjective.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rl/actor/preference_actor.h"
#include "rl/feed/preference_feed.h"
#include "rl/run/feed_stage.h"

namespace rl {

/// Metrics have TRL's names below train/ and val/: rewards/chosen, rewards/accuracies,
/// logps/chosen, of a reward model accuracy and margin. A resource; one thread at a time.
class PreferenceStage : public FeedStage<PreferenceFeed, PreferenceActor> {
 public:
  runtime::Status open(const StageSetup& setup) override;
  std::vector<std::filesystem::path> frozen_models() const override;
  runtime::Result<std::string> first_row() const override;
  RowLengths row_lengths() const override;
  runtime::Status start(runtime::Runtime& runtime, const StageSetup& setup,
                        const WorkerSlots& slots) override {
    return start_workers(runtime, slots, setup.spec("preference", slots));
  }
  runtime::Result<Metrics> step(double learning_rate) override;
  runtime::Result<Metrics> validate() override;

 private:
  runtime::Status find_reference(const PreferenceObjective& objective);
  std::vector<PreferencePasses> passes_of(const PreferenceStep& step) const;

  bool pairs_ = true;                // or single responses
  std::filesystem::path reference_;  // empty where none is loaded
};

}  // namespace rl
