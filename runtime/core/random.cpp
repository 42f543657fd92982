#include "runtime/core/random.h"

#include <sys/random.h>

#include "runtime/core/check.h"
#include "runtime/core/simulation.h"

namespace runtime {

void fill_random(std::span<std::byte> out) {
  if (Simulation* simulated = simulation()) return simulated->fill_random(out);
  // getrandom never returns short for up to 256 bytes once the kernel's pool is ready.
  CHECK(out.size() <= 256);
  CHECK(getrandom(out.data(), out.size(), 0) == static_cast<ssize_t>(out.size()));
}

}  // namespace runtime
