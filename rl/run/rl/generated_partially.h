// GeneratedPartially: a step takes the prompts that finish first, the others continue with the
// weights that it makes (ADR 36).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl/run/rl/partial_rollouts.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"

namespace rl {

struct GeneratedPartiallyOptions {
  PartialRolloutOptions partial;
  std::int64_t total_steps = 0;  // of the run
  std::int64_t batch_prompts = 1;
  std::int64_t mini_batch_prompts = 1;
};

/// Its file in a checkpoint has the prompts that are in flight.
class GeneratedPartially : public SampleGenerator {
 public:
  GeneratedPartially(GeneratedPartiallyOptions options, PromptSource& prompts, PartialCalls& calls)
      : options_(options), prompts_(prompts), calls_(calls) {}

  runtime::Result<GeneratedSamples> generate(const SampleRequest& request,
                                             StepTimer& timer) override;
  nlohmann::json position() const override { return prompts_.position(); }
  std::vector<StateFile> state_files() const override;
  runtime::Status restore(const std::filesystem::path& folder, const SavedAt& at) override;
  bool can_repeat_step() const override { return false; }

 private:
  // Prompts whose responses are in flight while steps are trained.
  struct OnTheirWay {
    std::int64_t steps_begun = 0;  // whose prompts have been begun
    std::int64_t epoch = 0;
    std::vector<std::vector<PartialTask>> tasks = {};    // by worker, oldest first
    std::vector<PartialCalls::PartialRef> partial = {};  // by worker, the same prompts
  };

  std::vector<PromptShard> shards() const;
  runtime::Status open(std::int64_t steps_done);
  runtime::Result<std::vector<std::vector<PromptBatch>>> begin_prompts(std::int64_t step);
  static runtime::Result<std::string> encode(const OnTheirWay& on_their_way,
                                             const PartialCalls& calls);

  GeneratedPartiallyOptions options_;
  PromptSource& prompts_;
  PartialCalls& calls_;
  OnTheirWay on_their_way_;
};

}  // namespace rl
