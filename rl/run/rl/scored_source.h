// ScoredSource: generated samples with their scores.
#pragma once

#include <cstdint>
#include <memory>

#include "rl/run/rl/balancer.h"
#include "rl/run/rl/references.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"
#include "rl/run/rl/score_reader.h"

namespace rl {

struct ScoredSourceOptions {
  std::int64_t samples_per_prompt = 1;
  /// Of a group in which samples lack a score at least this many others stay, or none.
  std::int64_t group_size_min = 1;
  /// Another source replaces groups in which a sample lacks a score.
  bool keeps_unscored = false;
};

class ScoredSource : public SampleSource {
 public:
  /// With `balancer` and `references` samples are placed, and references asked, while scoring goes
  /// on. A scorer that waits (for a server, for one that hangs) then costs less. Null: that comes
  /// later, of what is trained on.
  ScoredSource(const ScoredSourceOptions& options, std::unique_ptr<SampleGenerator> generator,
               ScoreCalls& reward, BatchCalls& batches, ScoreReader& reader, Balancer* balancer,
               References* references)
      : options_(options),
        generator_(std::move(generator)),
        reward_(reward),
        batches_(batches),
        reader_(reader),
        balancer_(balancer),
        references_(references) {}

  runtime::Result<StepBatch> next(const SampleRequest& request, StepTimer& timer) override;

  std::vector<StateFile> state_files() const override { return generator_->state_files(); }
  runtime::Status restore(const std::filesystem::path& folder, const SavedAt& at) override {
    return generator_->restore(folder, at);
  }
  bool can_repeat_step() const override { return generator_->can_repeat_step(); }
  nlohmann::json position() const override { return generator_->position(); }

 private:
  runtime::Status score(StepBatch& batch, StepTimer& timer);
  runtime::Status leave_out_unscored(StepBatch& batch);

  ScoredSourceOptions options_;
  std::unique_ptr<SampleGenerator> generator_;
  ScoreCalls& reward_;
  BatchCalls& batches_;
  ScoreReader& reader_;
  Balancer* balancer_;
  References* references_;
};

}  // namespace rl
