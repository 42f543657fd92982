// Any bytes as a safetensors file: they parse or give a message, and what parses lies inside the
// bytes.
#include "rl/weights/safetensors.h"

#include <cstddef>
#include <cstdint>

#include "rl/weights/tensor_table.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto header = rl::parse_safetensors(bytes, "fuzz");
  if (!header.ok()) {
    CHECK(!header.status().message().empty());
    return 0;
  }
  CHECK(header->data_offset <= size);
  for (const auto& entry : header->entries) {
    CHECK(entry.begin <= entry.end);
    CHECK(entry.end <= size - header->data_offset);
    CHECK(rl::tensor_bytes(entry.info.shape, entry.info.dtype) == entry.end - entry.begin);
    CHECK(entry.info.element_count() >= 0);
  }
  return 0;
}
