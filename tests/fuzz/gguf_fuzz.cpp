// Any bytes as a GGUF file: header, metadata, every tensor, and the vocabulary in it.
#include "rl/tokenizer/tokenizer_files.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rl/weights/gguf.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = rl::GgufFile::parse({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
  if (!file.ok()) {
    CHECK(!file.status().message().empty());
    return 0;
  }
  for (const auto& entry : (*file)->entries()) {
    (void)entry.value.as_integer();
    (void)entry.value.as_number();
    const rl::GgufArray* array = entry.value.as_array();
    if (array == nullptr) continue;
    (void)array->strings();
    (void)array->integers();
    (void)array->numbers();
  }
  for (const auto& tensor : (*file)->tensors()) {
    std::vector<float> out(static_cast<std::size_t>(tensor.element_count()));
    CHECK((*file)->read_f32(tensor.name, out).ok());
  }
  const auto tokenizer = rl::tokenizer_pipeline_from_gguf(**file);
  if (!tokenizer.ok()) return 0;
  const auto ids = (*tokenizer)->encode("Hello  w\u00f6rld 123\n", true);
  if (ids.ok()) (void)(*tokenizer)->decode(*ids, true);
  return 0;
}
