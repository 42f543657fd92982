// The files of torch.save: a zip archive whose data.pkl describes the tensors and whose data/N hold
// their bytes. The bytes are stored as they are, so that tensors are used from the mapping. What
// runs code when Python reads it is refused (state_dict.h).
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "rl/weights/shard_index.h"
#include "rl/weights/weight_source.h"

namespace rl {

inline constexpr const char* kPytorchFile = "pytorch_model.bin";
inline constexpr const char* kPytorchIndexFile = "pytorch_model.bin.index.json";

/// Opens a file of torch.save that holds a state dict, a `*.index.json` of such files, or a model
/// folder that holds `pytorch_model.bin` or its index. Views with strides, and several names for
/// one storage (tied weights), read as in PyTorch. Errors name the file, the tensor or what of the
/// pickle is refused, and what to do; kUnimplemented: the format before PyTorch 1.6.
runtime::Result<std::unique_ptr<WeightSource>> open_pytorch(
    const std::filesystem::path& folder_or_file);

/// The tensors in one such file's bytes.
runtime::Result<FileTensors> read_pytorch_tensors(std::span<const std::byte> file,
                                                  const std::string& name);

}  // namespace rl
