// Resources and labels as the command line has them: --num-cpus, --num-gpus, --resources, --label.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace placement {

/// Amounts of resources as the options gave them.
struct CliAmounts {
  std::optional<double> cpus = {};
  std::optional<double> gpus = {};
  std::optional<std::string> resources = {};  // a JSON object of others
};

/// Adds them to `resources`, and drops what is zero. Errors: kInvalidArgument, which names the
/// option.
runtime::Status add_resources(const CliAmounts& amounts, runtime::ResourceMap& resources);

/// Whether that resource is among them.
bool names(const CliAmounts& amounts, const std::string& resource);

/// Lines of KEY=VALUE. Errors: kInvalidArgument, which names the option and the line.
runtime::Result<runtime::Labels> parse_labels(const std::string& option,
                                              const std::vector<std::string>& lines);

}  // namespace placement
