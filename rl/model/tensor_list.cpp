#include "rl/model/tensor_list.h"

#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/core/check.h"

namespace rl {

using runtime::Result;

namespace {

struct TensorHead {
  std::int64_t dims = -1;  // undefined
  std::int64_t requires_grad = 0;
  std::int64_t sizes[2] = {0, 0};
};

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), from, from + size);
}

bool is_valid(const TensorHead& head, std::size_t bytes) {
  if (head.dims < -1 || head.dims > 2) return false;
  std::size_t elements = 1;
  for (std::int64_t i = 0; i < head.dims; ++i) {
    if (head.sizes[i] < 0) return false;
    elements *= static_cast<std::size_t>(head.sizes[i]);
    if (elements > bytes) return false;
  }
  return head.dims < 0 || elements * sizeof(float) <= bytes;
}

}  // namespace

std::vector<std::byte> encode_tensors(std::span<const at::Tensor> tensors) {
  std::vector<std::byte> bytes;
  for (const at::Tensor& tensor : tensors) {
    TensorHead head;
    if (tensor.defined()) {
      CHECK(tensor.dim() <= 2 && tensor.scalar_type() == at::kFloat && tensor.device().is_cpu());
      head.dims = tensor.dim();
      head.requires_grad = tensor.requires_grad() ? 1 : 0;
      for (std::int64_t i = 0; i < head.dims; ++i) head.sizes[i] = tensor.size(i);
    }
    append(bytes, &head, sizeof head);
    if (!tensor.defined()) continue;
    const at::Tensor dense = tensor.detach().contiguous();
    append(bytes, dense.const_data_ptr(), dense.nbytes());
  }
  return bytes;
}

Result<std::vector<at::Tensor>> decode_tensors(std::span<const std::byte> bytes) {
  std::vector<at::Tensor> tensors;
  while (!bytes.empty()) {
    TensorHead head;
    if (bytes.size() < sizeof head) return runtime::internal_error("tensors that are cut off");
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes = bytes.subspan(sizeof head);
    if (!is_valid(head, bytes.size())) return runtime::internal_error("tensors that are cut off");
    at::Tensor& tensor = tensors.emplace_back();
    if (head.dims < 0) continue;
    tensor = at::empty(at::IntArrayRef(head.sizes, static_cast<std::size_t>(head.dims)));
    if (tensor.nbytes() > 0) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), tensor.nbytes());
    bytes = bytes.subspan(tensor.nbytes());
    tensor.set_requires_grad(head.requires_grad != 0);
  }
  return tensors;
}

}  // namespace rl
