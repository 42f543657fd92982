// The order in which the users' placement groups, among them the places of jobs, look for room.
#include "runtime/head/group_queue.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class GroupQueueTest : public PartTest {
 protected:
  void add(const std::string& user, const std::string& name) {
    const GroupSpec group = add_group(add_job(node_, user), 1);
    names_[group.group] = name;
    queue_.add(group.group, time_ + 1h);
  }
  /// A look while there is room for `slots` of them.
  std::vector<std::string> place(std::size_t slots) {
    std::vector<std::string> placed;
    std::vector<GroupId> gone;
    queue_.place_all([&](GroupId group) { return std::ranges::count(gone, group) > 0; },
                     [&](GroupId group) {
                       if (names_.at(group) == waits_for_its_own_) return true;
                       if (placed.size() == slots) return false;
                       placed.push_back(names_.at(group));
                       gone.push_back(group);
                       return true;
                     });
    for (GroupId group : gone) queue_.remove(group);
    return placed;
  }

  using Names = std::vector<std::string>;
  const NodeId node_ = add_node(4);
  std::map<GroupId, std::string> names_;
  std::string waits_for_its_own_;  // a group that gets no place though there is room
  GroupQueue queue_{context_};
};

TEST_F(GroupQueueTest, OneUsersLookInOrderOfArrival) {
  for (const char* name : {"1", "2", "3"}) add("alice", name);
  EXPECT_EQ(place(2), (Names{"1", "2"}));
  EXPECT_EQ(place(2), (Names{"3"}));
}

TEST_F(GroupQueueTest, UsersTakeTurns) {
  for (const char* name : {"a1", "a2", "a3", "a4"}) add("alice", name);
  for (const char* name : {"b1", "b2"}) add("bob", name);
  add("carol", "c1");
  EXPECT_EQ(place(4), (Names{"a1", "b1", "c1", "a2"}));
  EXPECT_EQ(place(2), (Names{"b2", "a3"}));
}

TEST_F(GroupQueueTest, ATurnIsRememberedFromOneFreeSlotToTheNext) {
  for (const char* name : {"a1", "a2", "a3"}) add("alice", name);
  EXPECT_EQ(place(1), (Names{"a1"}));
  add("bob", "b1");
  EXPECT_EQ(place(1), (Names{"b1"}));
  EXPECT_EQ(place(1), (Names{"a2"}));
  add("bob", "b2");  // who comes with one at a time does not pass the others again and again
  add("carol", "c1");
  EXPECT_EQ(place(1), (Names{"c1"}));
  EXPECT_EQ(place(1), (Names{"b2"}));
  EXPECT_EQ(place(1), (Names{"a3"}));
}

TEST_F(GroupQueueTest, WhatGetsNoPlaceTakesNoTurn) {
  add("bob", "torn");
  waits_for_its_own_ = "torn";
  EXPECT_EQ(place(1), Names{});
  queue_.remove(names_.begin()->first);
  add("bob", "b1");
  add("alice", "a1");
  EXPECT_EQ(place(1), (Names{"b1"}));
}

}  // namespace
}  // namespace runtime
