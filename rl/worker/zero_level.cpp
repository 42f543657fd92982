#include "rl/worker/zero_level.h"

#include "rl/worker/frozen_sharding.h"
#include "rl/worker/fsdp_size.h"
#include "rl/worker/policy_options.h"

namespace rl {

using runtime::Result;

std::string sharding_section(const std::string& role) {
  if (role == kStageRole || role == kStageReferenceRole) return "engine";
  return role == kCriticRole ? "critic.fsdp" : role + ".fsdp_config";
}

std::string zero_level_key(const std::string& role) {
  if (role == kStageReferenceRole) return role + "_zero_level";
  return sharding_section(role) + ".zero_level";
}

bool is_zero_level_auto(const Config& config, const std::string& role) {
  const auto* value = config.find(zero_level_key(role));
  return value == nullptr || !value->is_number();
}

bool is_zero_level_three(const Config& config, const std::string& role) {
  return !is_zero_level_auto(config, role) && config.get_int(zero_level_key(role)).value_or(0) == 3;
}

std::string zero_level_text(const Config& config, const std::string& role) {
  const std::string level = is_zero_level_auto(config, role)
                                ? "auto, which is 0"
                                : config.find(zero_level_key(role))->dump();
  return zero_level_key(role) + "=" + level;
}

Result<std::optional<std::string>> training_device(const Config& config) {
  Result<std::optional<std::string>> device = config.find_string("trainer.device");
  if (!device.ok() || !*device) return device;
  const std::string& name = **device;
  if (name.empty() || name.starts_with("cpu") || name == "npu") device->reset();
  return device;
}

Result<ZeroLevel> zero_level_from_config(const Config& config, const std::string& role) {
  if (is_zero_level_auto(config, role)) return ZeroLevel::kNone;
  const std::string key = zero_level_key(role);
  const Result<std::int64_t> number = config.get_int(key);
  if (!number.ok()) return number.status();
  const auto level = static_cast<ZeroLevel>(*number);
  if (level == ZeroLevel::kNone) return level;
  const Result<std::int64_t> shard_ranks = shard_ranks_from_config(config, role);
  if (!shard_ranks.ok()) return shard_ranks.status();
  if (level == ZeroLevel::kWeights && *shard_ranks == 1) return ZeroLevel::kGradients;
  return level;
}

}  // namespace rl
