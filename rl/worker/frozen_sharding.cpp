#include "rl/worker/frozen_sharding.h"

#include <optional>

#include "rl/mesh/zero_level.h"
#include "rl/worker/fsdp_size.h"
#include "rl/worker/zero_level.h"

namespace rl {

using runtime::Result;

Result<FrozenSharding> frozen_sharding_from_config(const Config& config, const std::string& role) {
  if (is_zero_level_auto(config, role)) return FrozenSharding();
  const std::string key = zero_level_key(role);
  const Result<std::int64_t> level = config.get_int(key);
  if (!level.ok()) return level.status();
  if (static_cast<ZeroLevel>(*level) == ZeroLevel::kNone) return FrozenSharding();
  const Result<std::int64_t> shard_ranks = shard_ranks_from_config(config, role);
  if (!shard_ranks.ok()) return shard_ranks.status();
  if (*shard_ranks == 1) return FrozenSharding();
  return FrozenSharding{.shards = true, .shard_ranks = *shard_ranks};
}

std::string frozen_sharding_text(const Config& config, const std::string& role,
                                 std::int64_t workers) {
  if (workers == 1) return {};
  const FrozenSharding sharding =
      frozen_sharding_from_config(config, role).value_or(FrozenSharding());
  const std::int64_t given = shard_ranks_from_config(config, role).value_or(0);
  const std::int64_t group = given > 0 ? given : workers;
  if (!sharding.shards) {
    const std::string key = fsdp_size_key(role) + "=" + std::to_string(group);
    if (group == 1 && is_zero_level_three(config, role))
      return key + " makes " + zero_level_text(config, role) + " the same as 0";
    const bool names_group = group != workers && role != kStageReferenceRole;
    return names_group ? key + " has no effect with " + zero_level_text(config, role)
                       : std::string();
  }
  const std::string each = std::to_string(group) + " workers";
  return role + ": " +
         (group == workers ? each + " keep the weights once"
                           : std::to_string(workers / group) + " groups of " + each +
                                 "; each group keeps the weights once");
}

}  // namespace rl
