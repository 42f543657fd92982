// The metadata of a GGUF file that is understood.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/status.h"

namespace rl {

class GgufFile;

/// Refuses what would change the numbers and is not computed: each key below PREFIX ("llama.") has
/// to be one that is read, or to have the value at which it does nothing; the file has to be a
/// model. `head_dim` and `positions` are the model's. kUnimplemented, with the key and its value.
runtime::Status check_gguf_keys(const GgufFile& file, const std::string& prefix,
                                std::int64_t head_dim, std::int64_t positions);

}  // namespace rl
