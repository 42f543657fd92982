// Cap'n Proto messages to and from buffers. The one place where its exceptions become Status.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/ids.h"
#include "runtime/core/status.h"
#include "runtime/transport/buffer.h"

namespace runtime {

/// Bounds on what decoding an outside message may cost: words visited and pointers nested.
struct DecodeLimits {
  std::uint64_t words_max = 8 << 20;  // 64 MiB
  int nesting_max = 32;
};

namespace capnp_detail {
Buffer flatten(capnp::MessageBuilder& builder);
/// The current exception as kInvalidArgument "malformed <what>: ...". Call it in a catch block.
Status malformed(std::string_view what);
Status check_words(const Buffer& meta, std::string_view what);
}  // namespace capnp_detail

/// Builds a message with root `Schema`: `Buffer meta =
/// encode<schema::Hello>([&](schema::Hello::Builder hello) { ... });` Up to 1 KiB costs one
/// allocation.
template <class Schema, class Fill>
Buffer encode(Fill&& fill) {
  capnp::word scratch[128] = {};  // the builder wants zeros
  capnp::MallocMessageBuilder builder(kj::arrayPtr(scratch, 128));
  fill(builder.initRoot<Schema>());
  return capnp_detail::flatten(builder);
}

/// Reads a message from outside: `read(Schema::Reader)` returns a Status, which is passed on.
/// Everything read from the message must be copied out before `read` returns. `what` names the
/// message in errors. Errors: kInvalidArgument when the bytes are malformed or exceed the limits.
template <class Schema, class Read>
Status decode(const Buffer& meta, std::string_view what, Read&& read,
              const DecodeLimits& limits = {}) {
  if (Status status = capnp_detail::check_words(meta, what); !status.ok()) return status;
  try {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = limits.words_max;
    options.nestingLimit = limits.nesting_max;
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(meta.data()),
                     meta.size() / sizeof(capnp::word)),
        options);
    return read(reader.getRoot<Schema>());
  } catch (...) {
    return capnp_detail::malformed(what);
  }
}

/// Text and Data fields to and from our types.
inline std::string to_string(capnp::Text::Reader text) { return {text.begin(), text.size()}; }
inline capnp::Text::Reader to_text(const std::string& text) { return {text.c_str(), text.size()}; }
inline capnp::Data::Reader to_data(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> to_bytes(capnp::Data::Reader data) {
  return std::as_bytes(std::span(data.begin(), data.size()));
}
template <class Tag>
capnp::Data::Reader to_data(const Id<Tag>& id) {
  return {id.bytes.data(), id.bytes.size()};
}
/// An id field: 16 bytes, or absent for "none". Errors: kInvalidArgument on any other size.
template <class IdType>
Result<IdType> to_id(capnp::Data::Reader data) {
  if (data.size() == 0) return IdType{};
  return IdType::from_bytes(std::span(data.begin(), data.size()));
}

}  // namespace runtime
