// The layout of a safetensors file, which names and shapes decide: known before there are any data.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rl/weights/weight_source.h"
#include "runtime/core/result.h"

namespace rl {

/// A tensor that a file is to have.
struct PlannedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::kF32;
};

struct SafetensorsLayout {
  std::string header;                       // the file's first bytes
  std::vector<std::uint64_t> offsets = {};  // of each tensor's data, from the start of the file
  std::uint64_t bytes = 0;                  // of the file
};

/// The tensors in the order given, each right after the one before. kInvalidArgument: a duplicate
/// name; a name, or a value of the metadata, that is not UTF-8; too many tensors.
runtime::Result<SafetensorsLayout> plan_safetensors(
    std::span<const PlannedTensor> tensors, const std::map<std::string, std::string>& metadata);

}  // namespace rl
