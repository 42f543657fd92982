// The first 32 bytes of every connection, from anyone who can reach the port.
#include "runtime/transport/handshake.h"

#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto preamble = runtime::Preamble::decode(std::as_bytes(std::span(data, size)));
  if (!preamble.ok()) return 0;
  // What decodes encodes to the same, but for the reserved bytes.
  auto raw = preamble->encode();
  if (size != raw.size() || std::memcmp(raw.data(), data, 12) != 0 ||
      std::memcmp(raw.data() + 16, data + 16, 16) != 0)
    std::abort();
  return 0;
}
