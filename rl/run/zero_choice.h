// The level of ZeRO that a run takes where zero_level=auto leaves it to the nodes' memory.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rl/actor/worker_slots.h"
#include "rl/config/config.h"
#include "rl/mesh/zero_level.h"
#include "runtime/core/result.h"

namespace rl {

/// A role with a model.
struct ZeroRole {
  std::string role;  // kActorRole
  /// Whether a configuration with a number in place of auto is one that the role can have.
  std::function<bool(const Config& config)> allows;
  bool is_frozen = false;  // it does not train: its level is 0 or 3
};

/// The levels that roles got whose key was auto.
class ZeroChoice {
 public:
  struct Taken {
    std::string role;
    ZeroLevel level = ZeroLevel::kNone;

    bool operator==(const Taken&) const = default;
  };

  ZeroChoice() = default;
  ZeroChoice(std::vector<Taken> taken, std::string why)
      : taken_(std::move(taken)), why_(std::move(why)) {}

  std::span<const Taken> taken() const { return taken_; }
  /// Whether a level is above 0.
  bool shards() const;
  /// The configuration with numbers for these roles; as it is where all of them are 0.
  Config settled(const Config& config) const;
  /// One line for people; empty where nothing was left to choose.
  std::string text() const;

 private:
  std::vector<Taken> taken_;
  std::string why_;
};

/// The first of the levels 0, 1 (which costs nothing), 2 and 3 with which `fits` is content. From 1
/// on each is tried with frozen roles at 0 and then at 3. The same for all roles as far as they
/// allow it. Nothing is chosen with one worker or on a device. kResourceExhausted: none fits; what
/// `fits` said of level 0. Other errors of `fits` end the search.
runtime::Result<ZeroChoice> choose_zero_levels(
    const Config& config, std::span<const ZeroRole> roles, const SlotOptions& slots,
    const std::function<runtime::Status(const Config& config)>& fits);

}  // namespace rl
