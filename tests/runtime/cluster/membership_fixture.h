// Fixture for membership: the members, and the time until a machine sees that another one is none.
#pragma once

#include <utility>

#include "fixture.h"

namespace runtime::test {

class MembershipTest : public NetworkTest {
 protected:
  /// Milliseconds until machine `asked` hears that `count` nodes live; fails after `patience`.
  int time_until_members(int count, std::chrono::milliseconds patience, int asked) {
    const std::int64_t begin = now_us();
    const bool seen = eventually([&] { return cluster_->members(asked) == count; }, patience, 10ms);
    const int took = static_cast<int>((now_us() - begin) / 1000);
    EXPECT_TRUE(seen) << "after " << took << " ms there are " << cluster_->members(asked)
                      << " members instead of " << count;
    return took;
  }
  /// The node of a machine is a member again: by itself, or, where it has ended, started by its
  /// supervisor.
  void expect_back(int machine, int members) {
    const bool back = eventually(
        [&] {
          if (!cluster_->runs(machine)) expect_started(machine);
          return cluster_->members(0) == members;
        },
        30s, 200ms);
    EXPECT_TRUE(back) << cluster_->members(0);
  }
};

}  // namespace runtime::test
