#include "placement/app/cli_status.h"

#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

class StatusCommand : public ::testing::Test {
 protected:
  runtime::NodeInfo& node() { return cluster_.state.nodes.front(); }
  runtime::GroupState& add_group(const char* name) {
    return cluster_.add_group(name, {{{"CPU", 1}}});
  }
  Said status(bool json) {
    return said_by([&] { return status_command(cluster_.address(), json); });
  }
  nlohmann::ordered_json json() {
    const Said said = status(true);
    EXPECT_EQ(said.code, 0) << said.err;
    return nlohmann::ordered_json::parse(said.out, nullptr, false);
  }

  FakeCluster cluster_;
};

TEST_F(StatusCommand, WhatIsNotAvailableIsTaken) {
  node().resources = {{"CPU", 2}, {"GPU", 4}, {"memory", 8.0 * (1 << 30)}};
  node().available = {{"CPU", 0.5}, {"memory", 2.0 * (1 << 30)}};  // no GPU is left
  expect_said(status(false).out,
              {": 1 node\n", cluster_.address(), "CPU 1.5/2  GPU 4/4  memory 6/8 GiB"});
  const auto available = json()["nodes"][0]["available"];
  EXPECT_EQ(available.value("GPU", -1.0), 0);
  EXPECT_EQ(available.value("CPU", -1.0), 0.5);
}

TEST_F(StatusCommand, ANodeThatIsDrainedSaysUntilWhenAndWhy) {
  node().drain = runtime::NodeDrain{"preemption", std::chrono::seconds(30), std::chrono::seconds(9),
                                    1, "a job"};
  expect_said(status(false).out, {"draining (preemption): leaves within 30 s; waits for a job"});
  const auto shown = json()["nodes"][0];
  EXPECT_EQ(shown["state"], "draining");
  EXPECT_EQ(shown["drain"]["left_ms"], 30'000);
  EXPECT_EQ(shown["drain"]["deadline_unix_ms"], 9'000);
  node().drain.reset();
  EXPECT_EQ(json()["nodes"][0]["state"], "alive");
  EXPECT_FALSE(json()["nodes"][0].contains("drain"));
  node().alive = false;
  EXPECT_EQ(json()["nodes"][0]["state"], "dead");
}

TEST_F(StatusCommand, ADeadActorIsForScriptsOnly) {
  runtime::ActorState& dead = cluster_.add_actor("Gone");
  dead.phase = runtime::ActorPhase::kDead;
  dead.death = runtime::cause_of("killed by SIGKILL");
  runtime::ActorState& waiting = cluster_.add_actor("Learner");
  waiting.pending_reason = "no node has a GPU";
  waiting.restarts = 2;
  const std::string text = status(false).out;
  expect_said(text, {"Learner  node -  pid 0  restarts 2  no node has a GPU"});
  EXPECT_EQ(text.find("Gone"), std::string::npos) << text;
  const auto actors = json()["actors"];
  ASSERT_EQ(actors.size(), 2u);
  EXPECT_EQ(actors[0]["death_cause"], "killed by SIGKILL");
  EXPECT_FALSE(actors[1].contains("death_cause"));
}

TEST_F(StatusCommand, AGroupThatLostItsNodeIsRescheduled) {
  EXPECT_EQ(status(false).out.find("placement groups"), std::string::npos);
  add_group("new");
  add_group("torn").placements = 1;
  runtime::GroupState& placed = add_group("whole");
  placed.placed = true;
  placed.placements = 2;
  placed.nodes = {node().node};
  placed.gpus = {{0, 3}};
  const auto groups = json()["placement_groups"];
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0]["state"], "pending");
  EXPECT_EQ(groups[0]["bundles"][0]["node"], "") << "it has none yet";
  EXPECT_EQ(groups[1]["state"], "rescheduling");
  EXPECT_EQ(groups[2]["state"], "placed");
  EXPECT_EQ(groups[2]["bundles"][0]["node"], node().node.hex());
  EXPECT_EQ(groups[2]["bundles"][0]["gpus"], (std::vector<int>{0, 3}));
  expect_said(status(false).out, {"pending      PACK new  1 bundles", "rescheduling PACK torn"});
}

TEST_F(StatusCommand, JsonCanBeReadWhateverTheNamesAre) {
  cluster_.add_actor("C").name = "not \xff UTF-8, \x1b[2J";
  const auto actors = json()["actors"];
  ASSERT_EQ(actors.size(), 1u);
  EXPECT_EQ(actors[0]["name"], "not \xef\xbf\xbd UTF-8, \x1b[2J");
  EXPECT_EQ(status(true).out.find('\x1b'), std::string::npos);
}

TEST_F(StatusCommand, WithoutAClusterItFails) {
  cluster_.node().close();
  const Said said = status(true);
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.out, "");
  expect_said(said.err, {"error: ", cluster_.address()});
}

}  // namespace
}  // namespace placement
