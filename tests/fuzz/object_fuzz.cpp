// Requests and replies of object stores and their clients. The first byte picks which of the two
// the rest is.
#include "runtime/store/object_wire.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  auto meta = runtime::Buffer::copy_of(std::as_bytes(std::span(data + 1, size - 1)));
  if (data[0] % 2 == 0) {
    auto request = runtime::object_wire::decode_request(meta);
    if (!request.ok()) return 0;
    auto again =
        runtime::object_wire::decode_request(runtime::object_wire::encode_request(*request));
    if (!again.ok() || again->index() != request->index()) std::abort();
  } else {
    auto reply = runtime::object_wire::decode_reply(meta);
    if (!reply.ok()) return 0;
    if (!runtime::object_wire::decode_reply(runtime::object_wire::encode_reply(*reply)).ok())
      std::abort();
  }
  return 0;
}
