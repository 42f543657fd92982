// Writing a model as a Hugging Face folder that transformers loads to equal logits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/result.h"

namespace rl {

struct SaveOptions {
  std::int64_t shard_bytes_max =
      0;  // weights per file, a larger tensor alone in its own; 0: one model.safetensors
  DType dtype = DType::kF32;  // or kF16, kBF16: rounded to nearest; buffers stay fp32
};

/// Writes config.json, generation_config.json and the weights as safetensors (more than one file:
/// with their index) into `folder`, which is made if need be. Each file is replaced atomically.
/// Parameters on a device are copied to the host. Errors: kResourceExhausted (disk full),
/// kInvalidArgument (no permission, ...); files written before stay.
runtime::Status save_model_folder(const ModelConfig& config, const Parameters& parameters,
                                  const std::filesystem::path& folder,
                                  const SaveOptions& options = {});

/// The same without the weights, into a folder that is there.
runtime::Status save_model_configs(const ModelConfig& config, const std::filesystem::path& folder,
                                   const SaveOptions& options = {});

/// The names that save_model_folder writes for these parameters, relative to the folder.
std::vector<std::filesystem::path> model_folder_files(std::span<const ParameterSpec> specs,
                                                      const SaveOptions& options = {});

/// Reads the weights in `folder` again and compares them bit by bit with what save_model_folder has
/// to write. kInternal names the first tensor that differs. Memory: the largest tensor, twice.
runtime::Status verify_model_folder(const Parameters& parameters,
                                    const std::filesystem::path& folder,
                                    const SaveOptions& options = {});

/// Puts the tokenizer of `model` into `folder`, which must exist. The files of a Hugging Face
/// folder are copied as they are, chat template and generation_config.json included. From a .gguf
/// file's metadata it makes tokenizer.json and tokenizer_config.json. kNotFound: a folder without a
/// tokenizer. kUnimplemented: a GGUF vocabulary of a kind that has no tokenizer.json form here.
runtime::Status save_tokenizer(const std::filesystem::path& model,
                               const std::filesystem::path& folder);

/// What was written, with save_tokenizer()'s files next to it in `folder`, so that it generates as
/// it is. A failure stays as it is, and so does nothing: another rank writes it.
runtime::Result<std::vector<std::filesystem::path>> with_tokenizer(
    runtime::Result<std::vector<std::filesystem::path>> files, const std::filesystem::path& model,
    const std::filesystem::path& folder);

}  // namespace rl
