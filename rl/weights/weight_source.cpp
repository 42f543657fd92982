#include "rl/weights/weight_source.h"

#include "rl/weights/gguf.h"
#include "rl/weights/pytorch.h"
#include "rl/weights/safetensors.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

struct DTypeTraits {
  DType dtype;
  std::string_view name;
  DTypeBlock block;
};

// Indexed by the enum's value.
constexpr DTypeTraits kTraits[] = {
    {DType::kF64, "F64", {1, 8}},       {DType::kF32, "F32", {1, 4}},
    {DType::kF16, "F16", {1, 2}},       {DType::kBF16, "BF16", {1, 2}},
    {DType::kI64, "I64", {1, 8}},       {DType::kI32, "I32", {1, 4}},
    {DType::kI16, "I16", {1, 2}},       {DType::kI8, "I8", {1, 1}},
    {DType::kU64, "U64", {1, 8}},       {DType::kU32, "U32", {1, 4}},
    {DType::kU16, "U16", {1, 2}},       {DType::kU8, "U8", {1, 1}},
    {DType::kBool, "BOOL", {1, 1}},     {DType::kQ4_0, "Q4_0", {32, 18}},
    {DType::kQ4_1, "Q4_1", {32, 20}},   {DType::kQ5_0, "Q5_0", {32, 22}},
    {DType::kQ5_1, "Q5_1", {32, 24}},   {DType::kQ8_0, "Q8_0", {32, 34}},
    {DType::kQ2_K, "Q2_K", {256, 84}},  {DType::kQ3_K, "Q3_K", {256, 110}},
    {DType::kQ4_K, "Q4_K", {256, 144}}, {DType::kQ5_K, "Q5_K", {256, 176}},
    {DType::kQ6_K, "Q6_K", {256, 210}},
};

const DTypeTraits& traits(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  CHECK(index < std::size(kTraits));
  CHECK(kTraits[index].dtype == dtype);
  return kTraits[index];
}

}  // namespace

std::string_view dtype_name(DType dtype) { return traits(dtype).name; }

DTypeBlock dtype_block(DType dtype) { return traits(dtype).block; }

std::int64_t TensorInfo::element_count() const {
  std::int64_t count = 1;
  for (std::int64_t dimension : shape) count *= dimension;
  return count;
}

Status WeightSource::read_f32_range(std::string_view name, std::int64_t, std::span<float>) const {
  return runtime::unimplemented("this source cannot read a part of tensor " + std::string(name));
}

namespace {

bool is_pytorch(const std::filesystem::path& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) {
    const std::string name = model.filename().string();
    return name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth") ||
           name.ends_with(".bin.index.json");
  }
  const auto has = [&](const char* file) { return std::filesystem::exists(model / file, ignored); };
  return !has(kSafetensorsFile) && !has(kSafetensorsIndexFile) &&
         (has(kPytorchFile) || has(kPytorchIndexFile));
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_weights(const std::filesystem::path& model,
                                                   WeightReading reading) {
  if (is_pytorch(model)) return open_pytorch(model);
  if (model.extension() != ".gguf") return open_safetensors(model, reading);
  auto file = GgufFile::open(model);
  if (!file.ok()) return file.status();
  return std::unique_ptr<WeightSource>(std::move(*file));
}

}  // namespace rl
