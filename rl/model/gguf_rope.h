// The rotary positions of a GGUF file, in the words of config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/core/status.h"

namespace rl {

class GgufFile;

/// Writes `rope_scaling` from PREFIXrope.scaling.* and PREFIXrope.scale_linear (its older name), as
/// llama.cpp applies them. A factor without a type is linear. YaRN has its ramp, context and
/// temperature. `attn_factor` comes on top of either. `positions` is the model's context length.
/// kUnimplemented, with the key: what cannot be computed. kInvalidArgument: a key of the wrong
/// type.
runtime::Status read_gguf_rope_scaling(const GgufFile& file, const std::string& prefix,
                                       std::int64_t positions, nlohmann::json& out);

/// Writes Llama 3's `rope_scaling` where the file has rope_freqs.weight, which is all that such
/// files say of it: what each frequency is divided by. kUnimplemented: other divisors, or a further
/// scaling in `out`.
runtime::Status read_gguf_rope_divisors(const GgufFile& file, std::int64_t head_dim, double theta,
                                        nlohmann::json& out);

}  // namespace rl
