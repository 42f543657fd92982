// Gangs: a simulated driver's placement groups, made, manned and removed by the dice; and whether
// the head's account of the cluster adds up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "world.h"

namespace sim {

/// What the state of a cluster contradicts itself in; empty: nothing. Groups that are placed have a
/// node that is there for every bundle, as their strategy wants it. What nodes have free is no more
/// than what is left of them. `at_rest`: nothing starts, moves or waits, so that it is exactly
/// that.
std::string account_errors(const runtime::ClusterState& state, bool at_rest);

class Gangs {
 public:
  /// `modest`: so few and small that there is room for everything else.
  Gangs(World& world, bool modest) : world_(world), modest_(modest) {}

  /// Makes one, if there is room for it in time.
  void make(runtime::Runtime& rt);
  /// A bundle of one of them, or none.
  std::optional<runtime::BundleSlot> some_bundle();
  /// Ends one with its actors.
  void remove_one(runtime::Runtime& rt);
  /// All of them; false: some may be left, since the cluster did not answer.
  bool remove_all(runtime::Runtime& rt);
  void look(runtime::Runtime& rt);

 private:
  struct Gang {
    runtime::GroupId group;
    std::uint32_t bundles = 0;
  };
  bool remove(runtime::Runtime& rt, const Gang& gang);

  World& world_;
  const bool modest_;
  std::vector<Gang> gangs_;
};

}  // namespace sim
