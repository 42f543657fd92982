// A student and its teacher must mean the same by a token.
#pragma once

#include <filesystem>

#include "runtime/core/status.h"

namespace rl {

/// kInvalidArgument: the tokenizers of the two models differ; names both, the first token that they disagree on, and the cure. Others: those of Tokenizer::load.
runtime::Status check_same_vocabulary(const std::filesystem::path& student, const std::filesystem::path& teacher);

}  // namespace rl
