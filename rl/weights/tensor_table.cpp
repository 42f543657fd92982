#include "rl/weights/tensor_table.h"

#include <string>

#include "rl/weights/convert.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Status;

std::optional<std::uint64_t> tensor_bytes(const std::vector<std::int64_t>& shape, DType dtype) {
  constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 58;  // so that bytes fit in 64 bits for every dtype
  bool empty = false;
  std::uint64_t count = 1;
  for (std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    auto extent = static_cast<std::uint64_t>(dimension);
    if (extent == 0) {
      empty = true;
    } else if (extent > kElementsMax / count) {
      return std::nullopt;
    } else {
      count *= extent;
    }
  }
  if (empty) count = 0;
  const DTypeBlock block = dtype_block(dtype);
  if (block.elements > 1 && (shape.empty() || shape.back() % block.elements != 0)) return std::nullopt;
  return count / static_cast<std::uint64_t>(block.elements) * static_cast<std::uint64_t>(block.bytes);
}

TensorTable::TensorTable(std::vector<TensorInfo> tensors, std::vector<std::span<const std::byte>> data)
    : tensors_(std::move(tensors)), data_(std::move(data)) {
  CHECK(tensors_.size() == data_.size());
  by_name_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    CHECK(tensor_bytes(tensors_[i].shape, tensors_[i].dtype) == data_[i].size());
    by_name_.emplace(tensors_[i].name, i);
  }
  CHECK(by_name_.size() == tensors_.size());
}

const TensorInfo* TensorTable::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> TensorTable::bytes(const TensorInfo& tensor) const {
  auto index = static_cast<std::size_t>(&tensor - tensors_.data());
  CHECK(index < data_.size());
  return data_[index];
}

Status TensorTable::read_f32(std::string_view source, std::string_view name, std::span<float> out) const {
  const TensorInfo* tensor = find(name);
  if (tensor != nullptr && out.size() != static_cast<std::size_t>(tensor->element_count())) {
    return runtime::invalid_argument(std::string(source) + ": tensor " + tensor->name + " has " +
                                     std::to_string(tensor->element_count()) + " elements, not " + std::to_string(out.size()));
  }
  return read_f32_range(source, name, 0, out);
}

Status TensorTable::read_f32_range(std::string_view source, std::string_view name, std::int64_t first,
                                   std::span<float> out) const {
  const TensorInfo* tensor = find(name);
  if (tensor == nullptr) return runtime::not_found(std::string(source) + ": no tensor " + std::string(name));
  const DTypeBlock block = dtype_block(tensor->dtype);
  const std::int64_t count = tensor->element_count();
  const auto wanted = static_cast<std::int64_t>(out.size());
  if (first < 0 || first > count || wanted > count - first || first % block.elements != 0 || wanted % block.elements != 0) {
    return runtime::invalid_argument(std::string(source) + ": elements [" + std::to_string(first) + ", " +
                                     std::to_string(first + wanted) + ") of tensor " + tensor->name + " (" +
                                     std::to_string(count) + " elements, blocks of " + std::to_string(block.elements) +
                                     ") cannot be read alone");
  }
  convert_to_f32(tensor->dtype, bytes(*tensor).data() + first / block.elements * block.bytes, out);
  return {};
}

}  // namespace rl
