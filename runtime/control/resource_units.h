// How amounts of resources are counted by all who keep account of them: the scheduler at the head, and each node of what it holds for placement groups.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace runtime {

/// A thousand reservations of 0.1 CPU given back leave exactly what was there.
inline constexpr std::int64_t kResourceUnitsPerOne = 10000;
/// What is more is refused, or as good as more than there is; sums of some hundred do not overflow.
inline constexpr double kResourceAmountMax = 1e14;

/// Of an amount from zero to kResourceAmountMax.
inline std::int64_t resource_units(double amount) { return std::llround(amount * static_cast<double>(kResourceUnitsPerOne)); }

/// "2.5"
std::string resource_text(std::int64_t units);

}  // namespace runtime
