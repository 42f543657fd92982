// The meaning of trainer.gradient_compression.
#pragma once

#include <cstdint>
#include <string>

#include "rl/config/config.h"
#include "rl/optim/gradient_codec.h"
#include "runtime/core/result.h"

namespace rl {

inline constexpr const char* kCompressionKey = "trainer.gradient_compression";
inline constexpr const char* kTopKRatioKey = "trainer.gradient_topk_ratio";

/// How a role's gradients are compressed. kInvalidArgument names both keys: what does not go with
/// it, which is levels 2 and 3 of the role, passes that workers share, and leaves.
runtime::Result<GradientCompressionOptions> compression_from_config(const Config& config,
                                                                    const std::string& role);

/// For people: that it has no effect where one worker trains alone. Empty: it has, or is off.
std::string compression_text(const Config& config, std::int64_t workers);

}  // namespace rl
