// Long answers of tools, cut as verl cuts them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rl/agent/agent_options.h"

namespace rl {

/// `text` where it has at most `characters_max` characters; else what is left of it, with a note
/// where it was cut. Characters are those of UTF-8.
std::string cut_answer(std::string_view text, std::int64_t characters_max, TruncateSide side);

}  // namespace rl
