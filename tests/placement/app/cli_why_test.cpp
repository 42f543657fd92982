#include "placement/app/cli_why.h"

#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

class WhyCommand : public ::testing::Test {
 protected:
  /// Its id begins with these digits.
  runtime::ActorState& add_actor(const std::string& digits, const char* name) {
    runtime::ActorState& actor = cluster_.add_actor("Counter", name);
    actor.actor = id_of<runtime::ActorId>(digits);
    return actor;
  }
  runtime::GroupState& add_group(const char* name) {
    return cluster_.add_group(name, {{{"CPU", 1}}, {{"CPU", 2}, {"GPU", 1}}});
  }
  runtime::JobInfo& add_job(const std::string& digits) {
    runtime::JobInfo job;
    job.job = id_of<runtime::JobId>(digits);
    job.command = "./train";
    return cluster_.state.jobs.emplace_back(job);
  }
  template <class Id>
  static Id id_of(std::string digits) {
    digits.resize(32, '0');
    return *Id::from_hex(digits);
  }
  Said why(const std::string& what) {
    return said_by([&] { return why_command(cluster_.address(), what); });
  }
  /// The answer about what exists.
  std::string explained(const std::string& what) {
    const Said said = why(what);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_EQ(said.err, "");
    return said.out;
  }
  static void expect_unsaid(const std::string& text, const std::string& part) {
    EXPECT_EQ(text.find(part), std::string::npos) << part << " in: " << text;
  }

  FakeCluster cluster_;
};

TEST_F(WhyCommand, AnActorThatWaitsSaysForWhat) {
  runtime::ActorState& actor = add_actor("aaaaaaa1", "learner");
  actor.resources = {{"CPU", 2}, {"GPU", 0.5}};
  expect_said(explained("learner"),
              {"actor Counter 'learner' aaaaaaa1", ": pending", "asks for CPU 2, GPU 0.5",
               "waits: the head is about to look for a place"});
  actor.pending_reason = "no node has 2 CPUs";
  expect_said(explained("aaaaaaa1"), {"waits: no node has 2 CPUs"});
}

TEST_F(WhyCommand, AnActorThatIsBeingStartedSaysWhatItsNodeLacksForIt) {
  runtime::ActorState& actor = add_actor("aaaaaaa1", "learner");
  actor.phase = runtime::ActorPhase::kStarting;
  actor.node = cluster_.node().id;
  std::string trouble = "starting a worker: fork: no room (tried 3 times so far)";
  cluster_.on_observe<runtime::control::ReadStart>([&](const runtime::control::ReadStart& request) {
    EXPECT_EQ(request.actor, actor.actor);
    return trouble;
  });
  expect_said(explained("learner"),
              {"is being started on node " + actor.node.short_hex() +
               ", which cannot start its process yet: starting a worker: fork: no room (tried 3 "
               "times so far)\n"});
  trouble.clear();
  expect_said(explained("learner"),
              {"its process begins, or its constructor runs (starling logs "});
  actor.node = cluster_.add_node().node;  // it cannot be reached
  expect_said(explained("learner"), {"its process begins, or its constructor runs"});
}

TEST_F(WhyCommand, AnActorSaysOfWhatItDied) {
  runtime::ActorState& actor = add_actor("aaaaaaa1", "");
  actor.phase = runtime::ActorPhase::kAlive;
  actor.node = cluster_.node().id;
  actor.pid = 12;
  actor.gpus = {1, 3};
  actor.restarts = 2;
  actor.death = runtime::cause_of("killed by SIGKILL");
  actor.death.output_tail = "terminate called";
  expect_said(
      explained("aaaaaaa1"),
      {"runs on node " + actor.node.short_hex() + ", pid 12, GPU 1,3 of that node",
       "started again 2 times; the last time it ended: killed by SIGKILL", "terminate called"});
  actor.phase = runtime::ActorPhase::kDead;
  actor.restarts = 1;
  const std::string dead = explained("aaaaaaa1");
  expect_said(dead, {"died: killed by SIGKILL", "started again 1 time\n", "terminate called"});
  actor.death = {};
  expect_said(explained("aaaaaaa1"), {"died: cause unknown"});
}

TEST_F(WhyCommand, AGroupThatWaitsNamesThoseThatHoldRoom) {
  runtime::GroupState& placed = add_group("holder");
  placed.placed = true;
  placed.placements = 1;
  placed.nodes = {cluster_.node().id, cluster_.node().id};
  placed.gpus = {{}, {2}};
  runtime::GroupState& waiting = add_group("waiting");
  waiting.placements = 2;
  waiting.pending_reason = "no node has a GPU";
  waiting.spec.bundle_labels = {{{"zone", "a"}}};
  const std::string text = explained("waiting");
  expect_said(text,
              {"being placed again", "bundle 0: CPU 1 with zone=a\n", "bundle 1: CPU 2, GPU 1\n",
               "waits: no node has a GPU", "was placed 2 times, since it lost nodes",
               "holds room meanwhile: placement group 'holder'"});
  expect_unsaid(text, "meanwhile: placement group 'waiting'");
  const std::string whole = explained("holder");
  expect_said(whole,
              {"bundle 1: CPU 2, GPU 1 on node " + cluster_.node().id.short_hex() + ", GPU 2\n"});
  expect_unsaid(whole, "waits");
  expect_unsaid(whole, "meanwhile");
}

TEST_F(WhyCommand, ANodeNamesWhatHasItsResources) {
  const runtime::NodeId here = cluster_.node().id;
  cluster_.state.nodes.front().resources = {{"CPU", 4}};
  runtime::GroupState& group = add_group("gang");
  group.placed = true;
  group.nodes = {cluster_.add_node().node, here};
  runtime::ActorState& runs = add_actor("aaaaaaa1", "runs");
  runs.phase = runtime::ActorPhase::kStarting;
  runs.node = here;
  runtime::ActorState& ended = add_actor("aaaaaaa2", "ended");
  ended.phase = runtime::ActorPhase::kDead;
  ended.node = here;
  const std::string text = explained(here.hex());
  expect_said(text, {"offers CPU 4\n", "has left nothing\n", "holds for placement group 'gang'",
                     ": bundle 1 (CPU 2, GPU 1)\n", "runs actor Counter 'runs'"});
  expect_unsaid(text, "ended");
}

TEST_F(WhyCommand, AJobNamesWhatOfItWaits) {
  runtime::JobInfo& job = add_job("bbbbbbb1");
  runtime::ActorState& actor = add_actor("aaaaaaa1", "learner");
  actor.job = job.job;
  expect_said(explained("bbbbbbb1"), {"its actor Counter 'learner' aaaaaaa1 waits: the head is"});
  actor.pending_reason = "no node has a GPU";
  add_actor("aaaaaaa2", "anothers");
  runtime::GroupState& place = add_group("");
  place.job = job.job;
  place.pending_reason = "no node has 9 CPUs";
  expect_said(explained("bbbbbbb1"), {": pending", "its placement group"});
  job.place = place.spec.group;
  const std::string text = explained("bbbbbbb1");
  expect_said(text, {"its actor Counter 'learner' aaaaaaa1 waits: no node has a GPU",
                     "  it waits: no node has 9 CPUs"});
  expect_unsaid(text, "anothers");
  job.running = false;
  job.outcome = runtime::JobOutcome::kFailed;
  job.end = runtime::cause_of("exited with code 3");
  expect_said(explained("bbbbbbb1"), {": ended", "failed: exited with code 3"});
}

TEST_F(WhyCommand, FirstDigitsMeanOneThing) {
  add_actor("ccccccc1", "left");
  add_job("ccccccc2");
  const Said said = why("ccccccc");
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.out, "");
  expect_said(said.err, {"'ccccccc' may be actor Counter 'left' ccccccc1 (pending), job ccccccc2; "
                         "give more digits"});
  expect_said(explained("ccccccc2"), {"job ccccccc2"});
}

TEST_F(WhyCommand, ANameMeansAllThatHadItAndNoIdThatBeginsSo) {
  add_actor("beef", "");  // before those of that name
  add_actor("c1", "beef").phase = runtime::ActorPhase::kDead;
  add_actor("c2", "beef");
  add_actor("beef1", "");  // and behind them
  const std::string text = explained("beef");
  expect_said(text, {"'beef' c1000000", "'beef' c2000000"});
  expect_unsaid(text, "Counter beef");
}

TEST_F(WhyCommand, WhatIsNotThereIsRefusedWithTheNearest) {
  add_actor("aaaaaaa1", "learner");
  const Said said = why("learnr");
  EXPECT_EQ(said.code, 1);
  expect_said(said.err, {"called 'learnr'; did you mean 'learner'?"});
  const Said nothing = why("");
  EXPECT_EQ(nothing.code, 1) << "no digits are the first ones of every id";
  EXPECT_EQ(nothing.out, "");
}

}  // namespace
}  // namespace placement
