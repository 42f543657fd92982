// Units of resource amounts for all that keep account of them. These are the scheduler at the head,
// and each node for what it holds for placement groups.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "runtime/control/membership.h"
#include "runtime/core/status.h"

namespace runtime {

/// A thousand reservations of 0.1 CPU given back leave exactly what was there.
inline constexpr std::int64_t kResourceUnitsPerOne = 10000;
/// What is more is refused, or as good as more than there is; sums of some hundred do not overflow.
inline constexpr double kResourceAmountMax = 1e14;

/// Of an amount from zero to kResourceAmountMax.
inline std::int64_t resource_units(double amount) {
  return std::llround(amount * static_cast<double>(kResourceUnitsPerOne));
}

/// Of what one node, actor, job or bundle says about itself.
inline constexpr std::size_t kResourceNamesMax = 256;
inline constexpr std::size_t kResourceNameBytesMax = 256;

/// Whether it can be counted. Errors: kInvalidArgument naming the resource: no number from 0 to
/// kResourceAmountMax, or below the smallest share.
Status check_amount(const std::string& name, double amount);

/// Errors: kInvalidArgument: a name that is empty, too long or has control characters in it; too
/// many of them.
Status check_resource_names(const ResourceMap& amounts);

/// Whether a node may offer these amounts, or an actor request them. Errors: those of
/// check_resource_names() and check_amount().
Status check_resources(const ResourceMap& amounts);

/// "2.5"
std::string resource_text(std::int64_t units);

}  // namespace runtime
