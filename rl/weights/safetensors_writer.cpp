// write_safetensors: header first, then the tensors in the order given, each byte range right after
// the one before.
#include <algorithm>
#include <cmath>
#include <vector>

#include "rl/weights/atomic_file.h"
#include "rl/weights/convert.h"
#include "rl/weights/safetensors.h"
#include "rl/weights/safetensors_layout.h"
#include "rl/weights/tensor_table.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

Result<SafetensorsLayout> layout_of(std::span<const TensorView> tensors,
                                    const std::map<std::string, std::string>& metadata) {
  std::vector<PlannedTensor> planned;
  for (const TensorView& tensor : tensors) {
    if (tensor_bytes(tensor.shape, DType::kF32) != tensor.data.size_bytes()) {
      return runtime::invalid_argument("tensor " + tensor.name + ": its shape does not have the " +
                                       std::to_string(tensor.data.size()) +
                                       " elements of its data");
    }
    planned.push_back({tensor.name, tensor.shape, tensor.dtype});
  }
  return plan_safetensors(planned, metadata);
}

// A half reaches to 65504; what rounds beyond it would become infinity, and the model with it.
Status check_range(std::span<const float> values, DType dtype) {
  constexpr float kRoundsToInfinity = 65520.0F;
  if (dtype != DType::kF16) return {};
  for (const float value : values) {
    if (std::isfinite(value) && std::abs(value) >= kRoundsToInfinity) {
      return runtime::invalid_argument(
          "holds " + std::to_string(value) +
          ", which is beyond float16 (65504); write bfloat16 or float32");
    }
  }
  return {};
}

Status write_as(AtomicFile& out, std::span<const float> values, DType dtype) {
  if (dtype == DType::kF32) return out.write(std::as_bytes(values));
  constexpr std::size_t kElementsAtOnce = 1 << 20;
  std::vector<std::byte> bytes;
  for (std::size_t first = 0; first < values.size(); first += kElementsAtOnce) {
    const auto part = values.subspan(first, std::min(kElementsAtOnce, values.size() - first));
    bytes.resize(part.size() * static_cast<std::size_t>(dtype_block(dtype).bytes));
    if (Status status = check_range(part, dtype); !status.ok()) return status;
    convert_from_f32(dtype, part, bytes.data());
    if (Status status = out.write(bytes); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Status write_safetensors(const std::filesystem::path& file, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata) {
  const Result<SafetensorsLayout> layout = layout_of(tensors, metadata);
  if (!layout.ok()) return layout.status().with_context(file.string());
  auto out = AtomicFile::create(file, layout->bytes);
  if (!out.ok()) return out.status();
  Status status = out->write(layout->header);
  for (const TensorView& tensor : tensors) {
    if (!status.ok()) return status;
    status = write_as(*out, tensor.data, tensor.dtype);
    if (status.code() == runtime::ErrorCode::kInvalidArgument)
      status = status.with_context(file.string() + ": " + tensor.name);
  }
  return status.ok() ? out->commit() : status;
}

}  // namespace rl
