#include "rl/run/zero_choice.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "rl/worker/zero_level.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;
using Taken = ZeroChoice::Taken;

constexpr ZeroLevel kLevels[] = {ZeroLevel::kMoments, ZeroLevel::kGradients, ZeroLevel::kWeights};

// What is tried together.
struct Rung {
  ZeroLevel trained = ZeroLevel::kNone;
  ZeroLevel frozen = ZeroLevel::kNone;
};

// Frozen models whose embeddings are most of them take less when they are whole.
constexpr Rung kRungs[] = {
    {ZeroLevel::kMoments, ZeroLevel::kNone},   {ZeroLevel::kMoments, ZeroLevel::kWeights},
    {ZeroLevel::kGradients, ZeroLevel::kNone}, {ZeroLevel::kGradients, ZeroLevel::kWeights},
    {ZeroLevel::kWeights, ZeroLevel::kNone},   {ZeroLevel::kWeights, ZeroLevel::kWeights}};

std::string number_of(ZeroLevel level) { return std::to_string(static_cast<int>(level)); }

Config with_levels(const Config& config, std::span<const Taken> taken) {
  nlohmann::ordered_json tree = config.to_json();
  for (const Taken& one : taken) {
    std::string pointer = "/" + zero_level_key(one.role);
    std::ranges::replace(pointer, '.', '/');
    tree[nlohmann::ordered_json::json_pointer(pointer)] = static_cast<int>(one.level);
  }
  return config.with_tree(std::move(tree));
}

// These levels, or lower ones that the roles allow.
std::vector<Taken> taken_at(const Config& config, std::span<const ZeroRole> roles,
                            const Rung& rung) {
  std::vector<Taken> taken;
  for (const ZeroRole& role : roles) {
    Taken& one = taken.emplace_back(Taken{role.role, ZeroLevel::kNone});
    for (const ZeroLevel level : kLevels) {
      if (role.is_frozen && level != ZeroLevel::kWeights) continue;
      const Taken higher{role.role, level};
      if (level > (role.is_frozen ? rung.frozen : rung.trained) ||
          !role.allows(with_levels(config, std::span(&higher, 1))))
        break;
      one = higher;
    }
  }
  return taken;
}

// For people: the highest level of roles that train, and whether others share their weights.
std::string levels_text(std::span<const ZeroRole> roles, std::span<const Taken> taken) {
  ZeroLevel trained = ZeroLevel::kNone;
  bool frozen = false;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i].is_frozen)
      frozen = frozen || taken[i].level != ZeroLevel::kNone;
    else
      trained = std::max(trained, taken[i].level);
  }
  return number_of(trained) + (frozen ? " and frozen models kept once" : "");
}

}  // namespace

bool ZeroChoice::shards() const {
  return std::ranges::any_of(taken_,
                             [](const Taken& one) { return one.level != ZeroLevel::kNone; });
}

Config ZeroChoice::settled(const Config& config) const {
  return shards() ? with_levels(config, taken_) : config;
}

std::string ZeroChoice::text() const {
  std::string text;
  for (const Taken& one : taken_)
    text +=
        (text.empty() ? "" : ", ") + zero_level_key(one.role) + "=auto is " + number_of(one.level);
  return text.empty() ? text : text + ": " + why_;
}

Result<ZeroChoice> choose_zero_levels(const Config& config, std::span<const ZeroRole> roles,
                                      const SlotOptions& slots,
                                      const std::function<Status(const Config& config)>& fits) {
  std::vector<ZeroRole> open;
  std::ranges::copy_if(roles, std::back_inserter(open),
                       [&](const ZeroRole& role) { return is_zero_level_auto(config, role.role); });
  if (open.empty() || slots.on_device() || slots.nodes * slots.per_node < 2) return ZeroChoice();
  const Status plain = fits(config);
  if (plain.ok())
    return ZeroChoice(taken_at(config, open, {}),
                      "the run fits the nodes' memory as far as that is known");
  if (plain.code() != runtime::ErrorCode::kResourceExhausted) return plain;
  std::vector<std::vector<Taken>> tried = {taken_at(config, open, {})};
  for (const Rung& rung : kRungs) {
    std::vector<Taken> taken = taken_at(config, open, rung);
    if (std::ranges::find(tried, taken) != tried.end()) continue;
    const Status status = fits(with_levels(config, taken));
    if (status.ok())
      return ZeroChoice(std::move(taken), "with " + levels_text(open, tried.back()) +
                                              " the run does not fit the nodes' memory");
    if (status.code() != runtime::ErrorCode::kResourceExhausted) return status;
    tried.push_back(std::move(taken));
  }
  if (tried.size() == 1) return plain;
  return Status(plain.code(), plain.message() + ". zero_level=auto: nor do they with " +
                                  levels_text(open, tried.back()));
}

}  // namespace rl
