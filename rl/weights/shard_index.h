// The common part of formats that spread a model over several files. It has the index that says
// which file holds a tensor, and the files together as one source.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rl/weights/mapped_file.h"
#include "rl/weights/tensor_table.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/result.h"

namespace rl {

/// The tensors of one file, in its order.
struct FileTensors {
  std::vector<TensorInfo> infos;
  std::vector<TensorBytes> bytes;  // inside the file's mapping
};

/// Finds the tensors in a file's bytes; `name` is the file for error messages.
using ReadTensors = runtime::Result<FileTensors> (*)(std::span<const std::byte> file,
                                                     const std::string& name);

/// One file as a source.
runtime::Result<std::unique_ptr<WeightSource>> open_single(
    const std::filesystem::path& file, ReadTensors read,
    WeightReading reading = WeightReading::kThroughPageCache);

/// The files that a `*.index.json` names, which lie next to it, as one source. Errors name the file
/// that is missing, or a tensor that the index puts into a file that has none of that name.
runtime::Result<std::unique_ptr<WeightSource>> open_sharded(
    const std::filesystem::path& index, ReadTensors read,
    WeightReading reading = WeightReading::kThroughPageCache);

}  // namespace rl
