// GeneratedAhead: samples of the next steps, which other workers generate while this one is trained
// (ADR 35).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"
#include "rl/run/rl/sample_store.h"

namespace rl {

struct GeneratedAheadOptions {
  std::int64_t steps_ahead = 1;
  std::int64_t total_steps = 0;  // of the run
  std::int64_t batch_prompts = 1;
  std::int64_t samples_per_prompt = 1;
  std::string weights_name;  // unique to the run
};

/// Its file in a checkpoint has the samples that were generated and not trained on.
class GeneratedAhead : public SampleGenerator {
 public:
  GeneratedAhead(GeneratedAheadOptions options, PromptSource& prompts, AheadCalls& calls,
                 BatchCalls& batches)
      : options_(std::move(options)), prompts_(prompts), calls_(calls), batches_(batches) {}

  /// Waits for the samples of the request's step, and begins those of the steps behind it.
  runtime::Result<GeneratedSamples> generate(const SampleRequest& request,
                                             StepTimer& timer) override;
  nlohmann::json position() const override {
    return ahead_.empty() ? prompts_.position() : ahead_.front().position;
  }
  std::vector<StateFile> state_files() const override;
  runtime::Status restore(const std::filesystem::path& folder, const SavedAt& at) override;
  bool can_repeat_step() const override { return false; }

 private:
  // A step's samples, which are being generated while steps before it are trained.
  struct Ahead {
    std::int64_t step = 0;
    std::int64_t weights = 0;  // steps that those which generate had learned from
    nlohmann::json position;   // in the data, before its prompts
    StepPrompts prompts = {};
    std::vector<runtime::ObjectRef<Generated>> generated = {};  // by worker
    std::vector<Generated> restored = {};                       // instead, from a checkpoint
  };

  // What was published last.
  struct Published {
    std::uint64_t version = 0;  // 0: nothing yet
    std::int64_t step = 0;      // that the weights had learned from
  };

  runtime::Status begin(std::int64_t step, std::int64_t weights);
  runtime::Status fill(std::int64_t first, std::int64_t weights);
  static runtime::Result<std::string> encode(const std::deque<Ahead>& ahead,
                                             const AheadCalls& calls, const BatchCalls& batches);
  static runtime::Result<std::vector<SavedGroup>> groups_of(const Ahead& ahead,
                                                            const AheadCalls& calls,
                                                            const BatchCalls& batches);
  runtime::Status restore_step(std::span<const SavedGroup> groups, std::int64_t step,
                               const std::filesystem::path& file);

  GeneratedAheadOptions options_;
  PromptSource& prompts_;
  AheadCalls& calls_;
  BatchCalls& batches_;
  std::deque<Ahead> ahead_;  // in the order of their steps
  Published published_;
};

}  // namespace rl
