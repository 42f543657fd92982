// One seed: a cluster, drivers that use it, faults, and whether what must hold held.
#pragma once

#include <cstdint>
#include <string>

namespace sim {

struct Outcome {
  std::string failure;     // empty: everything held
  std::uint64_t hash = 0;  // of all that happened
  std::uint64_t steps = 0;
  double seconds = 0;  // simulated
  std::size_t calls = 0;
  std::size_t runs = 0;
  std::size_t succeeded = 0;
  std::uint64_t spills = 0;  // by the nodes that are there at the end
};

Outcome run_seed(std::uint64_t seed, bool trace = false);

}  // namespace sim
