// Any bytes as a file of torch.save: they parse or give a message. Every tensor of what parses can
// be read and lies inside the bytes.
#include "rl/weights/pytorch.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rl/weights/state_dict.h"
#include "rl/weights/tensor_table.h"
#include "runtime/core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto alone =
      rl::parse_state_dict(bytes, "fuzz");  // mutations seldom get through the archive around it
  CHECK(alone.ok() == alone.status().message().empty());
  auto tensors = rl::read_pytorch_tensors(bytes, "fuzz");
  if (!tensors.ok()) {
    CHECK(!tensors.status().message().empty());
    return 0;
  }
  for (const rl::TensorBytes& tensor : tensors->bytes) {
    CHECK(tensor.data.empty() || (tensor.data.data() >= bytes.data() &&
                                  tensor.data.data() + tensor.data.size() <= bytes.data() + size));
  }
  const rl::TensorTable table(std::move(tensors->infos), std::move(tensors->bytes));
  for (const rl::TensorInfo& info : table.tensors()) {
    CHECK(info.element_count() <= static_cast<std::int64_t>(size));
    std::vector<float> out(static_cast<std::size_t>(info.element_count()));
    CHECK(table.read_f32("fuzz", info.name, out).ok());
  }
  return 0;
}
