// Stored samples of a checkpoint with any content: read as what was written, or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rl/run/rl/sample_store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto groups = rl::decode_groups({reinterpret_cast<const char*>(data), size});
  if (groups.ok() && rl::decode_groups(rl::encode_groups(*groups)).value().size() != groups->size())
    std::abort();
  return 0;
}
