// The safetensors format: an 8-byte little-endian header length, a JSON header that gives every
// tensor's dtype, shape and byte range, then the bytes. Reading is open_safetensors in
// weight_source.h; here are the header parser and the writer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/weights/weight_source.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

inline constexpr const char* kSafetensorsFile = "model.safetensors";
inline constexpr const char* kSafetensorsIndexFile = "model.safetensors.index.json";

/// One entry of a header: the tensor and its bytes, as offsets from the end of the header.
struct SafetensorsEntry {
  TensorInfo info;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in order of their bytes
  std::map<std::string, std::string> metadata;
  std::uint64_t data_offset = 0;  // where the bytes begin, from the start of the file
};

/// Largest header accepted, the same as in the reference implementation.
inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 100'000'000;

/// Parses and checks the header of a whole file's bytes. Lengths are inside the file, byte ranges
/// are without overlap or hole, and shape x dtype equals each range. `name` is the file for error
/// messages. Allocates in proportion to the header.
runtime::Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file,
                                                     std::string_view name);

/// A tensor to be written: row-major, data.size() == product of shape. Borrows the data.
struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> data;
  DType dtype = DType::kF32;  // in the file; kF16 and kBF16 are rounded to nearest
};

/// Writes tensors with string metadata ({"format": "pt"} is what transformers expects) to `file`.
/// Atomic: a temporary file next to it is written, synced and renamed, so that readers see the old
/// file or the new one. After an error the old file is untouched and the temporary one removed.
/// SIGXFSZ must be ignored where a file-size limit is set. Errors: kInvalidArgument (duplicate
/// name, shape that does not fit the data), kResourceExhausted (disk full), errno's otherwise.
runtime::Status write_safetensors(const std::filesystem::path& file,
                                  std::span<const TensorView> tensors,
                                  const std::map<std::string, std::string>& metadata);

}  // namespace rl
