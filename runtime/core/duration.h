// Durations as people write them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace runtime {

/// "30s", "1.5min", "500ms", "2h"; a number alone is seconds. Errors: kInvalidArgument (no such
/// number or unit, below zero, above 24 h), naming the text.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "500 ms", "30 s", "2 min": rounded to what says enough.
std::string describe_duration(std::chrono::milliseconds duration);

}  // namespace runtime
