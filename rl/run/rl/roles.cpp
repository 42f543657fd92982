#include "rl/run/rl/roles.h"

#include <utility>

namespace rl {

runtime::Result<EmptyObjects> EmptyObjects::put(runtime::Runtime& runtime) {
  auto logprobs = runtime.put(std::vector<float>{});
  if (!logprobs.ok()) return logprobs.status();
  auto estimates = runtime.put(TokenEstimates{});
  if (!estimates.ok()) return estimates.status();
  auto samples = runtime.put(RolloutBatch{});
  if (!samples.ok()) return samples.status();
  return EmptyObjects{std::move(*logprobs), std::move(*estimates), std::move(*samples)};
}

std::vector<ProfiledGroup> Roles::profiled_groups() const {
  std::vector<ProfiledGroup> groups{profiled("policy", policy)};
  if (!critic.empty()) groups.push_back(profiled("critic", critic));
  groups.push_back(profiled("reward", reward));
  if (!reference.empty()) groups.push_back(profiled("reference", reference));
  for (const Teacher& teacher : teachers) groups.push_back(profiled(teacher.role(), teacher.group));
  return groups;
}

}  // namespace rl
