// Days of a cluster's life: drivers come and go, machines and heads die and are replaced, and
// between them nothing happens for a long time. What it takes then stays what it was.
#pragma once

#include <chrono>
#include <cstdint>

#include "scenario.h"

namespace sim {

/// `hours`: simulated. Fails, besides for what a seed fails for, when timers, connections or
/// entries of the journal gather.
Outcome run_hours(std::uint64_t seed, int hours, bool trace = false);

}  // namespace sim
