// The autoscaler's configuration in YAML (docs/guide/autoscaler.md). The one file here that knows
// yaml-cpp.
#pragma once

#include <filesystem>
#include <string>

#include "placement/autoscaler/config.h"
#include "runtime/core/result.h"

namespace placement {

/// Errors: kNotFound (no such file); kInvalidArgument, naming file, line and key: not YAML, an
/// unknown key, a value out of range, what contradicts itself.
runtime::Result<AutoscalerConfig> read_autoscaler_config(const std::filesystem::path& file);

/// `name`: of the file, for messages. A provider's command with a '/' that is not absolute is
/// relative to `folder`.
runtime::Result<AutoscalerConfig> parse_autoscaler_config(const std::string& text,
                                                          const std::string& name,
                                                          const std::filesystem::path& folder);

}  // namespace placement
