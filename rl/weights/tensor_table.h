// TensorTable: the tensors of mapped files by name. Every format's source is a table plus the
// mappings it points into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rl/weights/mapped_file.h"
#include "rl/weights/weight_source.h"

namespace rl {

/// Bytes that `shape` of `dtype` takes. nullopt: a dimension is negative, the product overflows, or
/// a row is not a whole number of blocks.
std::optional<std::uint64_t> tensor_bytes(const std::vector<std::int64_t>& shape, DType dtype);

/// The bytes of one tensor in a mapped file.
struct TensorBytes {
  TensorBytes() = default;
  TensorBytes(std::span<const std::byte> bytes)
      : data(bytes) {}  // NOLINT(google-explicit-constructor): row-major, nothing between

  std::span<const std::byte> data;
  /// In elements, one a dimension: where row-major is not how they lie (a transposed weight in a
  /// PyTorch file). `data` then reaches from the first element to the last. Empty: row-major.
  std::vector<std::int64_t> strides;
};

/// Borrows the tensors' bytes. Names are unique (the caller checks).
class TensorTable {
 public:
  TensorTable() = default;
  /// `bytes[i]` holds exactly the elements of `tensors[i]`.
  TensorTable(std::vector<TensorInfo> tensors, std::vector<TensorBytes> bytes);
  TensorTable(TensorTable&&) = default;
  TensorTable& operator=(TensorTable&&) = default;

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;

  /// See WeightSource. `source` names the file for error messages; large parts are read from the
  /// one of `files` that they are in, if they are in one.
  runtime::Status read_f32(std::string_view source, std::string_view name, std::span<float> out,
                           std::span<const MappedFile> files = {}) const;
  runtime::Status read_f32_range(std::string_view source, std::string_view name, std::int64_t first,
                                 std::span<float> out,
                                 std::span<const MappedFile> files = {}) const;

 private:
  std::vector<TensorInfo> tensors_;
  std::vector<TensorBytes> bytes_;
  std::unordered_map<std::string_view, std::size_t>
      by_name_;  // keys are views of tensors_'s names, which never change
};

}  // namespace rl
