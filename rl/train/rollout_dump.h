// The samples of a step as a file, in the form that verl's tools read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "rl/train/rollout_batch.h"
#include "runtime/core/status.h"

namespace rl {

/// Which file: `folder`/`step`.jsonl.
struct RolloutDump {
  std::filesystem::path folder;  // made if need be
  std::int64_t step = 0;
  bool append = false;           // go on with a file of the same step, rather than replace it
};

/// A line a sample: {"input", "output", "gts", "score", "step"}, and where the samples have them "tokens" (texts that make up the output), their "logprobs", "advantages" and "response_mask":
/// what `starling report` colours. `advantages`: one a sample, or none. Bytes that are no UTF-8 become U+FFFD. Errors: the folder or file cannot be written, with its name.
runtime::Status write_rollout_dump(const RolloutDump& dump, const std::vector<SampleText>& samples, const std::vector<float>& advantages = {});

}  // namespace rl
