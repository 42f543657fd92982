// The Hello message of a peer that knows the token.
#include "runtime/transport/handshake.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto hello =
      runtime::Hello::decode(runtime::Buffer::copy_of(std::as_bytes(std::span(data, size))));
  if (!hello.ok()) return 0;
  auto again = runtime::Hello::decode(hello->encode());
  if (!again.ok() || again->incarnation != hello->incarnation || again->version != hello->version)
    std::abort();
  return 0;
}
