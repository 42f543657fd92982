#include "runtime/node/reservations.h"

#include <cmath>
#include <utility>

#include "runtime/control/resource_units.h"

namespace runtime {

Reservations::Reservations(const ResourceMap& offered) : offered_(amounts_of(offered)) {}

Reservations::Amounts Reservations::amounts_of(const ResourceMap& resources) {
  Amounts amounts;
  for (const auto& [name, amount] : resources) {
    // What no node has is as good as too much, and does not overflow; what is no number is nothing.
    amounts[name] = resource_units(std::fmin(std::fmax(amount, 0), kResourceAmountMax));
  }
  return amounts;
}

std::string Reservations::missing(const Amounts& wanted) const {
  std::string text;
  for (const auto& [name, units] : wanted) {
    auto offered = offered_.find(name), used = used_.find(name);
    const std::int64_t left = (offered == offered_.end() ? 0 : offered->second) -
                              (used == used_.end() ? 0 : used->second);
    if (units > left)
      text += (text.empty() ? "" : ", ") + name + " " + resource_text(units) + " (has " +
              resource_text(left) + ")";
  }
  return text;
}

control::Refusals Reservations::apply(const control::Reserve& reserve, const std::string& closed) {
  control::Refusals refusals;
  if (reserve.reset) {
    held_.clear();
    used_.clear();
  }
  for (GroupId group : reserve.release) release(group);
  for (const control::Holding& holding : reserve.prepare) {
    if (closed.empty())
      prepare(holding, refusals);
    else
      refusals.refused.push_back({holding.group, closed});
  }
  for (GroupId group : reserve.commit) {
    if (auto held = held_.find(group); held != held_.end()) held->second.committed = true;
  }
  return refusals;
}

void Reservations::prepare(const control::Holding& holding, control::Refusals& refusals) {
  release(holding.group);  // asked again, it holds what it is asked to hold now
  Amounts amounts = amounts_of(holding.resources);
  if (const std::string lacks = missing(amounts); !lacks.empty()) {
    refusals.refused.push_back(
        {holding.group, "it lacks " + lacks + " in addition to what it holds for " +
                            std::to_string(held_.size()) + " other placement groups"});
    return;
  }
  for (const auto& [name, units] : amounts) used_[name] += units;
  held_[holding.group] = {std::move(amounts), false};
}

void Reservations::release(GroupId group) {
  auto held = held_.find(group);
  if (held == held_.end()) return;
  for (const auto& [name, units] : held->second.amounts) used_[name] -= units;
  held_.erase(held);
}

void Reservations::drop_prepared() {
  std::vector<GroupId> uncommitted;
  for (const auto& [group, held] : held_) {
    if (!held.committed) uncommitted.push_back(group);
  }
  for (GroupId group : uncommitted) release(group);
}

}  // namespace runtime
