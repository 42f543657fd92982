// The files of a model that are used here: config, tokenizer and one form of the weights, not the
// copies in other formats.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

enum class HubNeed { kModel, kTokenizer };

/// What to fetch, in two rounds: an index has to be there before the weight files that it names are
/// known.
struct NeededFiles {
  std::vector<std::string> files;  // config, tokenizer, and the weights where they are one file
  std::string index;               // among `files`; empty: none
  std::string gguf;                // the model itself, where there is nothing but one .gguf file
};

/// Chooses from all files of a model: safetensors before pytorch_model.bin before a single .gguf
/// file. `repo` begins messages. kNotFound: weights (or a tokenizer) of no form that is read here,
/// or several .gguf files, which are listed.
runtime::Result<NeededFiles> needed_files(const std::vector<std::string>& all, HubNeed need,
                                          std::string_view repo);

/// The weight files that an index in `folder` names. kInvalidArgument: damaged.
runtime::Result<std::vector<std::string>> indexed_files(const std::filesystem::path& folder,
                                                        const std::string& index);

}  // namespace rl
