// Responses on their way, of a checkpoint, with any content: read as what was written, or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rl/run/rl/partial_rollouts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto rollouts = rl::decode_rollouts({reinterpret_cast<const char*>(data), size});
  if (!rollouts.ok()) return 0;
  if (!(rl::decode_rollouts(rl::encode_rollouts(*rollouts)).value().tasks == rollouts->tasks))
    std::abort();
  (void)rl::deal_rollouts(*rollouts, {1, 2});
  return 0;
}
