// TensorTable: the tensors of mapped files by name. Both formats' sources are a table plus the mappings it points into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rl/weights/weight_source.h"

namespace rl {

/// Bytes that `shape` of `dtype` takes, or nullopt when a dimension is negative, the product overflows, or a row is not a
/// whole number of blocks.
std::optional<std::uint64_t> tensor_bytes(const std::vector<std::int64_t>& shape, DType dtype);

/// Borrows the tensors' bytes. Names are unique (the caller checks).
class TensorTable {
 public:
  TensorTable() = default;
  /// `data[i]` holds exactly the bytes of `tensors[i]`.
  TensorTable(std::vector<TensorInfo> tensors, std::vector<std::span<const std::byte>> data);
  TensorTable(TensorTable&&) = default;
  TensorTable& operator=(TensorTable&&) = default;

  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;

  /// The bytes of a tensor of this table, as stored.
  std::span<const std::byte> bytes(const TensorInfo& tensor) const;

  /// See WeightSource. `source` names the file for error messages.
  runtime::Status read_f32(std::string_view source, std::string_view name, std::span<float> out) const;
  runtime::Status read_f32_range(std::string_view source, std::string_view name, std::int64_t first, std::span<float> out) const;

 private:
  std::vector<TensorInfo> tensors_;
  std::vector<std::span<const std::byte>> data_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // keys are views of tensors_'s names, which never change
};

}  // namespace rl
