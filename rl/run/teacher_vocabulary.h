// Models that are given next to the trained one must mean the same by a token.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/status.h"

namespace rl {

/// kInvalidArgument: the tokenizers of the two models differ; names both, the first token that they
/// disagree on, and the cure. Others: those of Tokenizer::load.
runtime::Status check_same_vocabulary(const std::filesystem::path& student,
                                      const std::filesystem::path& teacher);

/// For a model that only reads what the policy writes: a critic, a reference (`role`, for
/// messages). It may know more tokens, and have no own tokenizer. Then its size alone is
/// looked at. kInvalidArgument: a token of the policy's that it takes for another one, or has no
/// embedding for. Others: those of Tokenizer::load and ModelConfig::load.
runtime::Status check_reads_vocabulary(const std::filesystem::path& policy,
                                       const std::filesystem::path& reader,
                                       const std::string& role);

}  // namespace rl
