// Scalars of GGUF metadata, shared by the parser and the value accessors.
#pragma once

#include <cstddef>

#include "rl/weights/gguf.h"

namespace rl {

/// Bytes of one encoded value; 0 for strings and arrays, whose size varies.
std::size_t gguf_scalar_bytes(GgufType type);

/// Decodes a scalar at `bytes` (any alignment, gguf_scalar_bytes of them) to the widest type of its
/// kind.
GgufValue::Storage decode_gguf_scalar(GgufType type, const std::byte* bytes);

}  // namespace rl
