#include "rl/weights/tensor_table.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "rl/weights/convert.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Status;

std::optional<std::uint64_t> tensor_bytes(const std::vector<std::int64_t>& shape, DType dtype) {
  constexpr std::uint64_t kElementsMax = std::uint64_t{1}
                                         << 58;  // so that bytes fit in 64 bits for every dtype
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
  if (block.elements > 1 && (shape.empty() || shape.back() % block.elements != 0))
    return std::nullopt;
  return count / static_cast<std::uint64_t>(block.elements) *
         static_cast<std::uint64_t>(block.bytes);
}

namespace {

// Elements [first, first + out.size()) of a tensor that does not lie row-major, in row-major order:
// runs along the last dimension.
void gather_to_f32(const TensorInfo& tensor, const TensorBytes& stored, std::int64_t first,
                   std::span<float> out) {
  const std::size_t dimensions = tensor.shape.size();
  const auto element_bytes = static_cast<std::size_t>(dtype_block(tensor.dtype).bytes);
  std::vector<std::int64_t> index(dimensions);
  for (std::size_t d = dimensions; d-- > 0; first /= tensor.shape[d])
    index[d] = first % tensor.shape[d];
  std::vector<std::byte> run;
  while (!out.empty()) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < dimensions; ++d) at += index[d] * stored.strides[d];
    const auto count =
        std::min(out.size(), static_cast<std::size_t>(tensor.shape.back() - index.back()));
    run.resize(count * element_bytes);
    const std::byte* from = stored.data.data() + static_cast<std::size_t>(at) * element_bytes;
    const std::size_t step = static_cast<std::size_t>(stored.strides.back()) * element_bytes;
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(run.data() + i * element_bytes, from + i * step, element_bytes);
    convert_to_f32(tensor.dtype, run.data(), out.first(count));
    out = out.subspan(count);
    index.back() += static_cast<std::int64_t>(count);
    for (std::size_t d = dimensions - 1; d > 0 && index[d] == tensor.shape[d]; --d) {
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

// Of what is smaller a page fault or two costs less than a call.
constexpr std::size_t kReadFrom = 64 << 10;

// What is converted goes by way of a block that stays in the processor's cache.
Status read_from(const MappedFile& file, DType dtype, std::span<const std::byte> part,
                 std::span<float> out) {
  if (dtype == DType::kF32) return file.read(part, std::as_writable_bytes(out));
  constexpr std::size_t kBlockElements = 1 << 16;  // whole blocks of every dtype
  const DTypeBlock unit = dtype_block(dtype);
  std::vector<std::byte> block;
  while (!out.empty()) {
    const std::size_t elements = std::min(kBlockElements, out.size());
    block.resize(elements / static_cast<std::size_t>(unit.elements) *
                 static_cast<std::size_t>(unit.bytes));
    if (const Status read = file.read(part.first(block.size()), block); !read.ok()) return read;
    convert_to_f32(dtype, block.data(), out.first(elements));
    part = part.subspan(block.size());
    out = out.subspan(elements);
  }
  return {};
}

}  // namespace

TensorTable::TensorTable(std::vector<TensorInfo> tensors, std::vector<TensorBytes> bytes)
    : tensors_(std::move(tensors)), bytes_(std::move(bytes)) {
  CHECK(tensors_.size() == bytes_.size());
  by_name_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto needed = tensor_bytes(tensors_[i].shape, tensors_[i].dtype);
    if (bytes_[i].strides.empty()) {
      CHECK(needed == bytes_[i].data.size());
    } else {
      CHECK(dtype_block(tensors_[i].dtype).elements == 1);
      CHECK(bytes_[i].strides.size() == tensors_[i].shape.size());
    }
    by_name_.emplace(tensors_[i].name, i);
  }
  CHECK(by_name_.size() == tensors_.size());
}

const TensorInfo* TensorTable::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

Status TensorTable::read_f32(std::string_view source, std::string_view name, std::span<float> out,
                             std::span<const MappedFile> files) const {
  const TensorInfo* tensor = find(name);
  if (tensor != nullptr && out.size() != static_cast<std::size_t>(tensor->element_count())) {
    return runtime::invalid_argument(std::string(source) + ": tensor " + tensor->name + " has " +
                                     std::to_string(tensor->element_count()) + " elements, not " +
                                     std::to_string(out.size()));
  }
  return read_f32_range(source, name, 0, out, files);
}

Status TensorTable::read_f32_range(std::string_view source, std::string_view name,
                                   std::int64_t first, std::span<float> out,
                                   std::span<const MappedFile> files) const {
  const TensorInfo* tensor = find(name);
  if (tensor == nullptr)
    return runtime::not_found(std::string(source) + ": no tensor " + std::string(name));
  const DTypeBlock block = dtype_block(tensor->dtype);
  const std::int64_t count = tensor->element_count();
  const auto wanted = static_cast<std::int64_t>(out.size());
  if (first < 0 || first > count || wanted > count - first || first % block.elements != 0 ||
      wanted % block.elements != 0) {
    return runtime::invalid_argument(std::string(source) + ": elements [" + std::to_string(first) +
                                     ", " + std::to_string(first + wanted) + ") of tensor " +
                                     tensor->name + " (" + std::to_string(count) +
                                     " elements, blocks of " + std::to_string(block.elements) +
                                     ") cannot be read alone");
  }
  const TensorBytes& stored = bytes_[static_cast<std::size_t>(tensor - tensors_.data())];
  if (!stored.strides.empty()) {
    gather_to_f32(*tensor, stored, first, out);
    return {};
  }
  const auto bytes_of = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements / block.elements * block.bytes);
  };
  const auto part = stored.data.subspan(bytes_of(first), bytes_of(wanted));
  const auto file = std::ranges::find_if(files, [&](const auto& f) { return f.contains(part); });
  if (file != files.end() && part.size() >= kReadFrom)
    return read_from(*file, tensor->dtype, part, out).with_context(source);
  convert_to_f32(tensor->dtype, part.data(), out);
  return {};
}

}  // namespace rl
