#include "runtime/transport/capnp_codec.h"

#include <kj/exception.h>

#include <cstring>
#include <exception>

namespace runtime::capnp_detail {

Buffer flatten(capnp::MessageBuilder& builder) {
  auto segments = builder.getSegmentsForOutput();
  // The stream framing: count of segments less one, each one's words, padded to a whole word; then
  // the segments.
  std::size_t table_bytes = (segments.size() / 2 + 1) * sizeof(capnp::word);
  std::size_t total = table_bytes;
  for (auto segment : segments) total += segment.asBytes().size();
  std::byte* at = nullptr;
  Buffer flat = Buffer::allocate(total, &at);
  std::memset(at, 0, table_bytes);
  auto put = [at](std::size_t index, std::uint32_t value) {
    std::memcpy(at + index * sizeof value, &value, sizeof value);
  };
  put(0, static_cast<std::uint32_t>(segments.size() - 1));
  for (std::size_t i = 0; i < segments.size(); ++i)
    put(i + 1, static_cast<std::uint32_t>(segments[i].size()));
  at += table_bytes;
  for (auto segment : segments) {
    auto bytes = segment.asBytes();
    std::memcpy(at, bytes.begin(), bytes.size());
    at += bytes.size();
  }
  return flat;
}

Status malformed(std::string_view what) {
  std::string prefix = "malformed " + std::string(what) + ": ";
  try {
    throw;
  } catch (const kj::Exception& error) {
    return invalid_argument(prefix + error.getDescription().cStr());
  } catch (const std::exception& error) {
    return invalid_argument(prefix + error.what());
  }
}

Status check_words(const Buffer& meta, std::string_view what) {
  if (meta.size() % sizeof(capnp::word) != 0 ||
      reinterpret_cast<std::uintptr_t>(meta.data()) % sizeof(capnp::word) != 0) {
    return invalid_argument("malformed " + std::string(what) + ": not whole aligned words");
  }
  if (meta.empty()) return invalid_argument("malformed " + std::string(what) + ": empty");
  return {};
}

}  // namespace runtime::capnp_detail
