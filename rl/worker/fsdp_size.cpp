#include "rl/worker/fsdp_size.h"

#include "rl/worker/frozen_sharding.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/zero_level.h"

namespace rl {

using runtime::Result;
using runtime::Status;

std::string fsdp_size_key(const std::string& role) { return sharding_section(role) + ".fsdp_size"; }

Result<std::int64_t> shard_ranks_from_config(const Config& config, const std::string& role) {
  const std::string key = fsdp_size_key(role);
  const auto* value = config.find(key);
  if (value == nullptr || !value->is_number()) return 0;
  const Result<std::int64_t> ranks = config.get_int(key);
  if (!ranks.ok()) return ranks;
  if (*ranks == -1) return 0;
  if (*ranks < 1) return config.out_of_range(key, "-1 or at least 1");
  return ranks;
}

Status check_fsdp_size(const Config& config, const std::string& role, std::int64_t workers) {
  const Result<std::int64_t> ranks = shard_ranks_from_config(config, role);
  if (!ranks.ok()) return ranks.status();
  if (*ranks == 0 || workers % *ranks == 0) return {};
  return config.out_of_range(
      fsdp_size_key(role),
      "-1 or a divisor of the number of workers, which is " + std::to_string(workers));
}

std::string fsdp_size_text(const Config& config, const std::string& role, std::int64_t workers) {
  const std::int64_t ranks = shard_ranks_from_config(config, role).value_or(0);
  if (ranks == 0 || ranks == workers) return {};
  const std::string key = fsdp_size_key(role) + "=" + std::to_string(ranks);
  if (!is_zero_level_three(config, role)) {
    const bool is_references =
        role == kStageRole && is_zero_level_three(config, kStageReferenceRole);  // which has none
    return is_references ? std::string()
                         : key + " has no effect with " + zero_level_text(config, role);
  }
  if (ranks == 1) return key + " makes " + zero_level_text(config, role) + " the same as 2";
  return (role == kStageRole ? "" : role + ": ") + std::to_string(workers / ranks) + " groups of " +
         std::to_string(ranks) + " workers; each group keeps the weights once";
}

}  // namespace rl
