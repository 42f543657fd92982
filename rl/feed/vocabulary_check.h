// A tokenizer that belongs to another model is found when data is read, not when a step looks up an
// embedding that is not there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/status.h"

namespace rl {

/// kInvalidArgument: an id that a model with `vocabulary` entries has no embedding for; names
/// `where`, the token, and the cure. 0: the model is unknown, and so is nothing checked.
runtime::Status check_vocabulary(std::span<const std::int32_t> ids, std::int64_t vocabulary,
                                 const Tokenizer& tokenizer, const std::string& where);

}  // namespace rl
