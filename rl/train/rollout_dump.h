// The samples of a step as a file, in the form that verl's tools read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
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

/// What is known of a sample beside its text.
struct DumpedSample {
  SampleText text;
  std::vector<float> advantages = {};           // one, or one of each learned token, or none
  std::map<std::string, double> extras = {};    // numbers that the reward gave beside the score
};

/// A line a sample: {"input", "output", "gts", "score", "step"}, the reward's further numbers by their names, and where the samples have them "tokens" (texts that make up the output), their
/// "logprobs", "advantages" and "response_mask": what `starling report` colours. Bytes that are no UTF-8 become U+FFFD. Errors: the folder or file cannot be written, with its name.
runtime::Status write_rollout_dump(const RolloutDump& dump, const std::vector<DumpedSample>& samples);

}  // namespace rl
