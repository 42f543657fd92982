// The first bytes of every connection, from anyone who can reach the port.
#include "runtime/transport/handshake.h"

#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto preamble = runtime::Preamble::decode(std::as_bytes(std::span(data, size)));
  if (!preamble.ok()) return 0;
  // What decodes encodes to the same, but for the reserved bytes and what another version has
  // behind the common ones.
  const auto raw = preamble->encode();
  const auto differs = [&](std::size_t begin, std::size_t end) {
    return std::memcmp(raw.data() + begin, data + begin, end - begin) != 0;
  };
  if (differs(0, 12) || differs(16, runtime::Preamble::kCommonBytes)) std::abort();
  if (preamble->version == runtime::kWireVersion &&
      (differs(0, 16) || size != raw.size() ||
       differs(runtime::Preamble::kCommonBytes, raw.size())))
    std::abort();
  return 0;
}
