// A table of sample completions before and after training, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl/batch/rollout_batch.h"

namespace rl {

/// Columns: prompt, expected, before, after, cut to fit into `width` and free of control
/// characters; scores before the responses. Rows of `after` belong to those of `before`; either may
/// be empty.
std::string sample_table(const std::vector<SampleText>& before,
                         const std::vector<SampleText>& after, std::int64_t width = 118);

}  // namespace rl
