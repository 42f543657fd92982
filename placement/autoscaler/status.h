// The output of `starling autoscaler status`, as JSON. Its keys are what scripts rely on: add,
// never rename.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "placement/autoscaler/planner.h"

namespace placement {

struct StatusContext {
  std::string config_file;
  std::int64_t epoch_ms = 0;  // of the steady clock's zero, in Unix time
  std::uint64_t bound = 0;    // Demand::bound
  std::uint64_t unlisted = 0;
};

nlohmann::ordered_json status_json(const NodePlanner& planner, const StatusContext& context);
/// For people. `now_ms`: Unix time. Parts that are missing are left out.
std::string status_text(const nlohmann::ordered_json& status, std::int64_t now_ms);

}  // namespace placement
