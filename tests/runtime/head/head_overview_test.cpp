// The cluster as people and metrics see it.
#include "runtime/head/head_overview.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

class HeadOverviewTest : public PartTest {
 protected:
  HeadOverviewTest() : node_(add_node(4)), job_(add_job(node_)) {}

  HeadOverview::Sources sources() {
    return {.shown =
                [](NodeInfo info) {
                  info.hostname = "shown";
                  return info;
                },
            .actors_waiting = [] { return std::size_t{11}; },
            .nodes_draining = [] { return std::size_t{12}; },
            .drains_begun = [] { return std::uint64_t{13}; }};
  }
  void exit(const ActorSpec& spec) {
    context_.commit(command::ActorRestarts{spec.actor, {}});
    scheduler_.release_actor(spec.actor);
  }

  const ClusterId cluster_ = ClusterId::random();
  const NodeId node_;
  const JobId job_;
  HeadOverview overview_{context_, cluster_, sources()};
};

TEST_F(HeadOverviewTest, AnEmptyClusterHasAllNumbers) {
  context_.commit(command::EndJob{job_, JobOutcome::kFailed});
  const Numbers numbers = overview_.numbers();
  for (const char* none : {"actors_pending", "actors_starting", "actors_alive", "actors_dead",
                           "actor_restarts", "jobs_running", "groups_placed", "groups_pending"}) {
    ASSERT_TRUE(numbers.contains(none)) << none;
    EXPECT_EQ(numbers.at(none), 0) << none;
  }
  EXPECT_EQ(numbers.at("nodes"), 1);
  EXPECT_EQ(numbers.at("jobs_ended"), 1);
  EXPECT_EQ(numbers.at("actors_waiting"), 11);
  EXPECT_EQ(numbers.at("nodes_draining"), 12);
  EXPECT_EQ(numbers.at("drains"), 13);
}

TEST_F(HeadOverviewTest, CountsByPhase) {
  add_living(job_);
  const ActorSpec again = add_living(job_);
  exit(again);
  make_alive(again);
  exit(again);
  const ActorSpec dead = add_actor(job_);
  context_.commit(command::ActorDead{dead.actor, {}});
  add_placed_group(job_, 1);
  add_group(job_, 1);
  add_group(job_, 1);
  const Numbers numbers = overview_.numbers();
  EXPECT_EQ(numbers.at("actors_alive"), 1);
  EXPECT_EQ(numbers.at("actors_pending"), 1);
  EXPECT_EQ(numbers.at("actors_starting"), 0);
  EXPECT_EQ(numbers.at("actors_dead"), 1);
  EXPECT_EQ(numbers.at("actor_restarts"), 2);
  EXPECT_EQ(numbers.at("jobs_running"), 1);
  EXPECT_EQ(numbers.at("groups_placed"), 1);
  EXPECT_EQ(numbers.at("groups_pending"), 2);
}

TEST_F(HeadOverviewTest, TheStateHasEverythingButLongOutput) {
  const ActorSpec actor = add_living(job_);
  add_group(job_, 1);
  DeathCause cause;
  cause.text = "exited with code 1";
  cause.output_tail = "a backtrace";
  context_.commit(command::EndJob{job_, JobOutcome::kFailed, cause});
  const Answer answer = ask(overview_, control::QueryCluster{});
  ASSERT_TRUE(status(answer).ok());
  const ClusterState state = std::get<ClusterState>(***answer);
  EXPECT_EQ(state.cluster, cluster_);
  ASSERT_EQ(state.nodes.size(), 1u);
  EXPECT_EQ(state.nodes[0].hostname, "shown") << "with what changes by itself";
  ASSERT_EQ(state.actors.size(), 1u);
  EXPECT_TRUE(state.actors[0] == record(actor).state());
  EXPECT_EQ(state.groups.size(), 1u);
  ASSERT_EQ(state.jobs.size(), 1u);
  EXPECT_EQ(state.jobs[0].end.text, "exited with code 1");
  EXPECT_EQ(state.jobs[0].end.output_tail, "");
  EXPECT_EQ(tables_.jobs().find(job_)->info.end.output_tail, "a backtrace");
}

TEST_F(HeadOverviewTest, AWrongFilterIsAnswered) {
  control::ListActors list;
  list.filters = {{"colour", "red"}};
  EXPECT_EQ(status(ask(overview_, list)).code(), ErrorCode::kInvalidArgument);
  list.filters.clear();
  EXPECT_TRUE(status(ask(overview_, list)).ok());
}

}  // namespace
}  // namespace runtime
