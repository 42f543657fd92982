#include "rl/run/rl/run_fit.h"

#include <utility>

#include "rl/run/reward_model_path.h"
#include "rl/worker/compression_keys.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/fsdp_size.h"
#include "rl/worker/team_keys.h"
#include "rl/worker/zero_level.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

ZeroRole frozen_role(const char* name) {
  return {
      .role = name,
      .allows =
          [name](const Config& config) { return frozen_sharding_from_config(config, name).ok(); },
      .is_frozen = true};
}

}  // namespace

std::vector<ZeroRole> zero_roles(const Config& config, const TrainerOptions& trainer,
                                 const SlotOptions& slots) {
  std::vector<ZeroRole> roles = {{kActorRole, [device = slots.device](const Config& with) {
                                    return PolicyOptions::from_config(with, device).ok();
                                  }}};
  if (trainer.uses_critic())
    roles.push_back({kCriticRole, [device = slots.device](const Config& with) {
                       return CriticOptions::from_config(with, device).ok();
                     }});
  if (trainer.uses_reference() || trainer.distills) roles.push_back(frozen_role(kReferenceRole));
  if (!reward_models(config).empty()) roles.push_back(frozen_role(kRewardModelRole));
  return roles;
}

std::vector<std::string> mesh_lines(const Config& config, const TrainerOptions& trainer,
                                    const SlotOptions& slots) {
  const std::int64_t workers = slots.nodes * slots.per_node;
  std::vector<std::string> lines;
  for (const ZeroRole& role : zero_roles(config, trainer, slots)) {
    if (role.is_frozen) {
      std::string groups = frozen_sharding_text(config, role.role, workers);
      if (!groups.empty()) lines.push_back(std::move(groups));
      continue;
    }
    std::string teams = teams_text(config, role.role, workers);
    if (!teams.empty()) lines.push_back(std::move(teams));
    std::string groups = fsdp_size_text(config, role.role, workers);
    if (!groups.empty()) lines.push_back(std::move(groups));
    for (std::string& key : unused_strategy_keys(config, role.role))
      lines.push_back(std::move(key));
  }
  std::string compression = compression_text(config, workers);
  if (!compression.empty()) lines.push_back(std::move(compression));
  return lines;
}

Status check_groups(const Config& config, const TrainerOptions& trainer, const SlotOptions& slots) {
  const std::int64_t workers = slots.nodes * slots.per_node;
  for (const ZeroRole& role : zero_roles(config, trainer, slots)) {
    Status divides = check_fsdp_size(config, role.role, workers);
    if (divides.ok() && !role.is_frozen) divides = check_teams(config, role.role, workers);
    if (!divides.ok()) return divides;
  }
  return {};
}

Result<RunFit> fit_run(const Config& config, const TrainerOptions& trainer,
                       const PolicyOptions& policy, const ModelConfig& policy_model,
                       const RunLengths& lengths, const SlotOptions& slots,
                       std::span<const NodeRoom> nodes) {
  const Status shared =
      check_pass_sharing(config, kActorRole, policy_model, slots.nodes * slots.per_node);
  if (!shared.ok()) return shared;
  if (const Status divides = check_groups(config, trainer, slots); !divides.ok()) return divides;
  const std::vector<ZeroRole> roles = zero_roles(config, trainer, slots);
  const auto count = [&](const Config& settled, PolicyOptions options) {
    const Result<ZeroLevel> level = zero_level_from_config(settled, kActorRole);
    if (!level.ok()) return Result<RunFit>(level.status());
    options.learner.zero = *level;
    Result<RunMemory> memory = run_memory(settled, trainer, options, policy_model, lengths, slots);
    if (!memory.ok()) return Result<RunFit>(memory.status());
    const Status fits = check_memory_fits(memory->roles, slots, nodes);
    return Result<RunFit>(
        RunFit{.policy_level = *level, .memory = std::move(*memory), .fits = fits});
  };
  const Result<ZeroChoice> zero =
      choose_zero_levels(config, roles, slots, [&](const Config& settled) {
        const Result<RunFit> fit = count(settled, policy);
        return fit.ok() ? fit->fits : fit.status();
      });
  const bool none_fits =
      !zero.ok() && zero.status().code() == runtime::ErrorCode::kResourceExhausted;
  if (!zero.ok() && !none_fits) return zero.status();
  Result<RunFit> fit = count(none_fits ? config : zero->settled(config), policy);
  if (!fit.ok()) return fit;
  if (none_fits)
    fit->fits = zero.status();
  else
    fit->zero = *zero;
  return fit;
}

}  // namespace rl
