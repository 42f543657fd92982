// Validator: greedy (or as `rollout.val_kwargs` say) answers to all validation rows.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "rl/metrics/metrics.h"
#include "rl/metrics/validation_metrics.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_dump.h"
#include "runtime/core/result.h"

namespace rl {

class Validator {
 public:
  /// All rows, in batches.
  using Rounds = std::function<runtime::Result<std::vector<StepPrompts>>()>;

  /// This many samples are kept as texts.
  Validator(Rounds rounds, GenerateCalls& policy, ScoreCalls& reward, SampleDump& dump,
            std::int64_t shown_samples)
      : rounds_(std::move(rounds)),
        policy_(policy),
        reward_(reward),
        dump_(dump),
        shown_samples_(shown_samples) {}

  /// See validation_metrics(), and val-aux/num_turns.
  runtime::Result<Metrics> validate(std::int64_t step);

  /// Of the first and of the last validation.
  const std::vector<SampleText>& first_samples() const { return first_samples_; }
  const std::vector<SampleText>& last_samples() const { return last_samples_; }

 private:
  // What one validation has seen so far.
  struct Seen {
    std::vector<ValidatedPrompt> prompts;
    std::vector<SampleText> texts;
    std::vector<double> turns;
  };

  runtime::Status validate_round(const StepPrompts& prompts, std::int64_t step, bool append,
                                 Seen& seen);
  runtime::Status keep_texts(const DumpedBatch& batch, std::vector<SampleText>& texts);

  Rounds rounds_;
  GenerateCalls& policy_;
  ScoreCalls& reward_;
  SampleDump& dump_;
  std::int64_t shown_samples_;
  std::vector<SampleText> first_samples_;
  std::vector<SampleText> last_samples_;
};

}  // namespace rl
