// Points in time as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

/// "2026-01-31T12:00:00.123Z", of milliseconds since 1970; empty for 0.
std::string time_text(std::uint64_t unix_milliseconds);

}  // namespace runtime
