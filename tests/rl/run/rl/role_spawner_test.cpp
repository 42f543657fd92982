// Requests to a cluster that is not there. Whole groups are started by the tests of trainer/.
#include "rl/run/rl/role_spawner.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

class RuntimeSpawnerTest : public ::testing::Test {
 protected:
  template <class T>
  void expect_not_started() {
    WorkerGroup<T> group;
    const runtime::Status started =
        spawner_.spawn(WorkerSlots(), /*reserves=*/true, WorkerSpec{.config = "{}"}, group);
    EXPECT_FALSE(started.ok());
    const std::string who = std::string("starting the ") + T::kName + " workers";
    EXPECT_NE(started.message().find(who), std::string::npos) << started.to_string();
    EXPECT_TRUE(group.empty());
  }

  char name_[5] = "test";
  char* arguments_[2] = {name_, nullptr};
  runtime::Runtime runtime_{1, arguments_};  // it is not started
  RuntimeSpawner spawner_{runtime_};
};

TEST_F(RuntimeSpawnerTest, WorkersThatCannotBeStartedAreNamedByTheirRole) {
  expect_not_started<PolicyActor>();
  expect_not_started<CriticActor>();
  expect_not_started<ReferenceActor>();
  expect_not_started<RewardActor>();
}

TEST_F(RuntimeSpawnerTest, NeitherSlotsNorObjectsComeFromNoCluster) {
  EXPECT_EQ(spawner_.reserve({.nodes = 1, .per_node = 1}).status().code(),
            runtime::ErrorCode::kUnavailable);
  EXPECT_EQ(spawner_.put_nothing().status().code(), runtime::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace rl
