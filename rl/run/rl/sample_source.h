// SampleSource: the source of a step's samples. Generators generate them; sources score, filter,
// mix and place them, one around the other. See source_factory.h for the stack of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "rl/actor/actor_values.h"
#include "rl/feed/prompt_feed.h"
#include "rl/metrics/metrics.h"
#include "rl/metrics/step_metrics.h"
#include "rl/run/rl/prompt_source.h"
#include "rl/run/rl/saved_part.h"
#include "rl/run/rl/step_batch.h"
#include "runtime/core/result.h"

namespace rl {

/// Which samples are wanted.
struct SampleRequest {
  std::int64_t step = 1;
  std::int64_t round = 0;  // of generation in this step
};

/// Samples as they were generated.
struct GeneratedSamples {
  StepPrompts prompts;
  std::vector<Generated> generated;  // by worker
  Metrics metrics = {};
};

/// Generates the samples of prompts.
class SampleGenerator : public SavedPart {
 public:
  virtual runtime::Result<GeneratedSamples> generate(const SampleRequest& request,
                                                     StepTimer& timer) = 0;

  /// The position in the data from which a run that resumes now continues.
  virtual nlohmann::json position() const = 0;
};

/// Samples of a step with their scores.
class SampleSource : public SavedPart {
 public:
  virtual runtime::Result<StepBatch> next(const SampleRequest& request, StepTimer& timer) = 0;

  /// See SampleGenerator.
  virtual nlohmann::json position() const = 0;
};

/// A source around another one, which keeps its own state besides.
class SourceDecorator : public SampleSource {
 public:
  explicit SourceDecorator(std::unique_ptr<SampleSource> inner) : inner_(std::move(inner)) {}

  std::vector<StateFile> state_files() const override { return inner_->state_files(); }
  runtime::Status restore(const std::filesystem::path& folder, const SavedAt& at) override {
    return inner_->restore(folder, at);
  }
  bool can_repeat_step() const override { return inner_->can_repeat_step(); }
  nlohmann::json position() const override { return inner_->position(); }

 protected:
  SampleSource& inner() { return *inner_; }

 private:
  std::unique_ptr<SampleSource> inner_;
};

}  // namespace rl
