// The samples of a step as a file, in the form that verl's tools read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "rl/train/rollout_batch.h"
#include "runtime/core/status.h"

namespace rl {

/// Writes `folder`/`step`.jsonl, a line a sample: {"input", "output", "gts", "score", "step"}. The folder is made; a file of the same step is
/// replaced, or with `append` gone on with. Bytes that are no UTF-8 become U+FFFD. Errors: the folder or file cannot be written, with its name.
runtime::Status write_rollout_dump(const std::filesystem::path& folder, std::int64_t step, const std::vector<SampleText>& samples, bool append = false);

}  // namespace rl
