// The contents of a node that delay the end of its drain.
#include "runtime/head/node_contents.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

class NodeContentsTest : public PartTest {
 protected:
  NodeContentsTest() : other_(add_node(0)), node_(add_node(8)), job_(add_job(other_)) {}

  std::string what_keeps() const { return runtime::what_keeps(tables_, node_); }

  const NodeId other_, node_;
  const JobId job_;
};

TEST_F(NodeContentsTest, WhatRunsElsewhereOrNoMoreKeepsNoNode) {
  add_actor(job_);  // waits for a place
  const ActorSpec dead = add_living(job_);
  context_.commit(command::ActorDead{dead.actor, {}});
  const JobId ended = add_job(node_);
  context_.commit(command::EndJob{ended, JobOutcome::kSucceeded});
  EXPECT_TRUE(is_empty(tables_, node_));
  EXPECT_EQ(what_keeps(), "");
  EXPECT_FALSE(is_empty(tables_, other_)) << "a job's driver runs there";
}

TEST_F(NodeContentsTest, ActorsAndJobsAreCountedAndWhyTheyStayIsSaid) {
  const ActorSpec spec = add_living(job_);
  EXPECT_FALSE(is_empty(tables_, node_));
  const std::string named = "Counter " + spec.actor.short_hex();
  EXPECT_EQ(what_keeps(), "1 actor (" + named + ")");
  context_.commit(command::ActorWaits{spec.actor, "no node has CPU 1"});
  add_job(node_);
  EXPECT_EQ(what_keeps(), "1 actor (" + named + ": no node has CPU 1), 1 job");
  context_.commit(command::ActorMoves{spec.actor});
  add_job(node_);
  EXPECT_EQ(what_keeps(), "1 actor (" + named + " is moving), 2 jobs");
}

TEST_F(NodeContentsTest, OfManyActorsTheFirstAreNamed) {
  for (int i = 0; i < 3; ++i) add_living(job_);
  EXPECT_EQ(what_keeps().find("..."), std::string::npos) << what_keeps();
  add_living(job_);
  const std::string text = what_keeps();
  EXPECT_EQ(text.find("4 actors (Counter "), 0u) << text;
  EXPECT_EQ(text.substr(text.size() - 6), "; ...)");
}

}  // namespace
}  // namespace runtime
