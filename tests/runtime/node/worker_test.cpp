// Actors' processes from birth to death, on real nodes. This test program is their executable
// (program.h).
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/control/actor_directory.h"
#include "runtime/control/group_client.h"
#include "runtime/control/key_value_client.h"
#include "runtime/transport/blocking.h"
#include "tests/runtime/node/cluster_fixture.h"
#include "tests/runtime/node/program.h"

namespace runtime {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Worker : public ClusterTest {
 protected:
  std::unique_ptr<TestDriver> connect(const std::string& address, std::uint32_t warm = 0) {
    auto driver = TestDriver::connect(address, warm);
    EXPECT_TRUE(driver.ok()) << driver.status().message();
    return driver.ok() ? std::move(*driver) : nullptr;
  }
};

TEST_F(Worker, IsBornServesAndIsKilled) {
  auto driver = connect(start_head());
  auto actor = driver->create("Echo", {{"CPU", 1}}, "echo");
  ASSERT_TRUE(actor.ok()) << actor.status().message();
  EXPECT_TRUE(process_runs(actor->pid));
  EXPECT_EQ(actor->class_name, "Echo");
  EXPECT_EQ(actor->node, driver->client().node_id());
  EXPECT_FALSE(actor->unix_path.empty());
  EXPECT_TRUE(eventually([&] {
    return driver->logged().find("(Echo pid=" + std::to_string(actor->pid) + ", node=" +
                                 actor->node.short_hex() + ") echo built") != std::string::npos;
  })) << driver->logged();
  EXPECT_TRUE(eventually([&] {
    return driver->logged().find("threads 1 extra -") != std::string::npos;
  })) << driver->logged();

  auto state = driver->cluster();
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(state->actors.size(), 1u);
  EXPECT_EQ(state->actors[0].phase, ActorPhase::kAlive);
  EXPECT_EQ(state->nodes[0].resources["CPU"] - state->nodes[0].available["CPU"], 1);

  EXPECT_TRUE(driver->kill(actor->actor).ok());
  EXPECT_FALSE(process_runs(actor->pid));
  EXPECT_EQ(driver->state(actor->actor)->phase, ActorPhase::kDead);
}

TEST_F(Worker, GetsItsEnvironmentAndThreads) {
  auto driver = connect(start_head());
  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = "Echo";
  spec.env = {{"EXTRA", "more"}};
  spec.threads = 3;
  ASSERT_TRUE(driver->create(spec).ok());
  EXPECT_TRUE(eventually([&] {
    return driver->logged().find("threads 3 extra more") != std::string::npos;
  })) << driver->logged();
}

class WorkerTiming : public Worker {};

TEST_F(WorkerTiming, KilledMinusNineIsKnownWithinASecond) {
  auto driver = connect(start_head());
  auto actor = driver->create("Echo");
  ASSERT_TRUE(actor.ok());
  auto before = std::chrono::steady_clock::now();
  ::kill(actor->pid, SIGKILL);
  EXPECT_TRUE(driver->state(actor->actor).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(1));
}

TEST_F(Worker, KilledMinusNineIsNamed) {
  auto driver = connect(start_head());
  auto actor = driver->create("Echo");
  ASSERT_TRUE(actor.ok());
  ::kill(actor->pid, SIGKILL);
  auto state = driver->state(actor->actor);
  ASSERT_TRUE(state.ok());
  ASSERT_EQ(state->phase, ActorPhase::kDead);
  EXPECT_EQ(state->death.signal, SIGKILL);
  Status status = death_status(*state);
  EXPECT_EQ(status.code(), ErrorCode::kActorDied);
  for (const std::string& part :
       {std::string("Echo"), std::to_string(actor->pid), std::string("SIGKILL")}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST_F(Worker, ConstructorsFailInTheirOwnWays) {
  auto driver = connect(start_head());
  EXPECT_EQ(driver->create("Throws").status(), task_failed("Throws: boom"));

  Status crashed = driver->create("Crashes").status();
  EXPECT_EQ(crashed.code(), ErrorCode::kActorDied);
  EXPECT_NE(crashed.message().find("SIGSEGV"), std::string::npos) << crashed.message();
  EXPECT_NE(crashed.message().find("backtrace: in Crashes()"), std::string::npos)
      << crashed.message();

  Status exited = driver->create("Exits").status();
  EXPECT_EQ(exited.code(), ErrorCode::kActorDied);
  EXPECT_NE(exited.message().find("code 5"), std::string::npos) << exited.message();

  // On a busy machine a process may not even have connected by the first deadline.
  Status late;
  for (milliseconds deadline(700);
       late.message().find("constructor has not returned") == std::string::npos; deadline *= 2) {
    ASSERT_LT(deadline, seconds(60)) << late.message();
    ActorSpec sleepy;
    sleepy.actor = ActorId::random();
    sleepy.class_name = "Sleeps";
    late = driver->create(sleepy, deadline).status();
    EXPECT_EQ(late.code(), ErrorCode::kDeadlineExceeded) << late.message();
  }

  // None of them is left, and none holds on to anything.
  EXPECT_TRUE(eventually([&] {
    auto state = driver->cluster();
    return state.ok() &&
           std::all_of(state->actors.begin(), state->actors.end(),
                       [](const ActorState& a) { return a.phase == ActorPhase::kDead; });
  }));
}

TEST_F(Worker, WhatDoesNotFitSaysWhy) {
  auto driver = connect(start_head({"--num-cpus", "2"}));
  ActorSpec large;
  large.actor = ActorId::random();
  large.class_name = "Echo";
  large.resources = {{"CPU", 1}, {"GPU", 4}};
  Status status = driver->create(large, milliseconds(300)).status();
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(status.message().find("GPU 4 (has 0)"), std::string::npos) << status.message();
}

TEST_F(Worker, RunsOnAnotherNodeAndItsLinesArrive) {
  std::string head = start_head({"--num-cpus", "1"});
  std::string node = start_node(head, {"--resources", "{\"there\": 1}"});
  auto driver = connect(head);
  auto actor = driver->create("Echo", {{"there", 1}});
  ASSERT_TRUE(actor.ok()) << actor.status().message();
  EXPECT_EQ(actor->node_address, node);
  EXPECT_NE(actor->node, driver->client().node_id());
  EXPECT_TRUE(eventually([&] { return driver->logged().find("echo built") != std::string::npos; }));

  // Losing the node is the actor's death.
  ::kill(session_of(node).pid, SIGKILL);
  auto state = driver->state(actor->actor);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->phase, ActorPhase::kDead);
  EXPECT_NE(state->death.text.find("is gone"), std::string::npos) << state->death.text;
  EXPECT_TRUE(eventually([&] { return !process_runs(actor->pid); }))
      << "the worker outlived its node";
}

TEST_F(Worker, WarmOnesAreUsedFirst) {
  auto driver = connect(start_head(), 2);
  std::set<int> warm;
  ASSERT_TRUE(eventually([&] {
    warm.clear();
    const auto shown = starling({"list", "workers", "--state", "idle", "--json"});
    const auto list = Json::parse(shown.out, nullptr, false);
    if (!list.is_array()) return false;
    for (const auto& worker : list) warm.insert(worker["pid"].get<int>());
    return warm.size() == 2;
  }));
  auto actor = driver->create("Echo");
  ASSERT_TRUE(actor.ok());
  EXPECT_TRUE(warm.contains(actor->pid));
  EXPECT_TRUE(eventually([&] { return driver->logged().find("(Echo pid=") != std::string::npos; }));
}

TEST_F(Worker, EightStartTogether) {
  auto driver = connect(start_head());
  std::vector<std::shared_ptr<Event>> done;
  std::atomic<int> built{0};
  Deadline deadline = deadline_after(seconds(10));
  for (int i = 0; i < 8; ++i) {
    done.push_back(std::make_shared<Event>(driver->loop()));
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Echo";
    ActorDirectory(driver->client())
        .create(spec, deadline, [&built, event = done.back()](Result<ActorAddress> address) {
          if (address.ok()) ++built;
          event->set();
        });
  }
  for (const auto& event : done) EXPECT_TRUE(driver->loop().run_until(*event, deadline));
  EXPECT_EQ(built, 8);
}

TEST_F(Worker, DiesWithItsDriver) {
  start_head();
  for (int signal : {SIGKILL, SIGTERM}) {
    BackgroundCommand driver({self(), "driver", "hold"});
    std::string out = driver.wait_for_output("ready ");
    int first = 0, second = 0;
    ASSERT_EQ(std::sscanf(out.substr(out.find("ready")).c_str(), "ready %d %d", &first, &second),
              2);
    EXPECT_TRUE(process_runs(first) && process_runs(second));
    ::kill(driver.pid(), signal);
    EXPECT_TRUE(eventually([&] { return !process_runs(first) && !process_runs(second); }));
  }
  EXPECT_TRUE(eventually([&] {
    Json status = Json::parse(starling({"status", "--json"}).out);
    return std::all_of(status["jobs"].begin(), status["jobs"].end(),
                       [](const Json& job) { return job["state"] == "failed"; });
  }));
}

TEST_F(Worker, DiesWithItsNode) {
  std::string head = start_head();
  auto driver = connect(head);
  auto actor = driver->create("Stubborn");
  ASSERT_TRUE(actor.ok());
  Event told(driver->loop());
  driver->client().set_on_shutdown([&](Status) { told.set(); });
  ::kill(session_of(head).pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !process_runs(actor->pid); }));
  EXPECT_TRUE(driver->loop().run_until(told, deadline_after(seconds(20))));
  EXPECT_EQ(driver->create("Echo").status().code(), ErrorCode::kUnavailable);
}

TEST_F(Worker, StopEndsEvenTheStubborn) {
  auto driver = connect(start_head());
  auto actor = driver->create("Stubborn");
  ASSERT_TRUE(actor.ok());
  EXPECT_EQ(starling({"stop", "--force"}).code, 0);
  EXPECT_FALSE(process_runs(actor->pid));
}

TEST_F(Worker, RendezvousThroughKeys) {
  std::string head = start_head();
  auto first = connect(head);
  Deadline deadline = deadline_after(seconds(5));
  Event got(first->loop());
  std::string value;
  KeyValueClient(first->client()).get("address", true, deadline, [&](Result<std::string> result) {
    value = result.value_or("failed");
    got.set();
  });
  EXPECT_TRUE(wait_done(first->loop(), deadline, [&](auto done) {
                KeyValueClient(first->client()).put("address", "here", deadline, done);
              }).ok());
  EXPECT_TRUE(first->loop().run_until(got, deadline));
  EXPECT_EQ(value, "here");
  auto sum = wait_for<std::int64_t>(first->loop(), deadline, [&](auto done) {
    KeyValueClient(first->client()).add("n", 3, deadline, done);
  });
  EXPECT_EQ(*sum, 3);
}

TEST_F(Worker, PlacementGroupsHoldTheirResources) {
  auto driver = connect(start_head({"--num-cpus", "4"}));
  GroupSpec spec{GroupId::random(), "gang", GroupStrategy::kPack, {{{"CPU", 2}}, {{"CPU", 2}}}};
  Deadline deadline = deadline_after(seconds(5));
  auto group = wait_for<GroupState>(driver->loop(), deadline, [&](auto done) {
    GroupClient(driver->client()).create(spec, deadline, done);
  });
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_EQ(group->nodes.size(), 2u);
  ActorSpec outside;
  outside.actor = ActorId::random();
  outside.class_name = "Echo";
  outside.resources = {{"CPU", 1}};
  EXPECT_EQ(driver->create(outside, milliseconds(200)).status().code(),
            ErrorCode::kResourceExhausted);
  ActorSpec inside = outside;
  inside.actor = ActorId::random();
  inside.bundle = BundleSlot{spec.group, 1};
  EXPECT_TRUE(driver->create(inside).ok());
  EXPECT_TRUE(wait_done(driver->loop(), deadline, [&](auto done) {
                GroupClient(driver->client()).remove(spec.group, deadline, done);
              }).ok());
  EXPECT_EQ(driver->state(inside.actor)->phase, ActorPhase::kDead);
}

class Submit : public ClusterTest {};

TEST_F(Submit, StreamsOutputAndReturnsTheExitCode) {
  start_head();
  CommandResult result = starling(
      {"submit", "--env", "A=b c", "--", "sh", "-c", "echo out $A; echo err >&2; pwd; exit 7"});
  EXPECT_EQ(result.code, 7);
  EXPECT_EQ(result.out, "out b c\n" + std::filesystem::current_path().string() + "\n");
  EXPECT_TRUE(result.err.starts_with("err\nerror: job ") &&
              result.err.find("exited with code 7") != std::string::npos)
      << result.err;
  EXPECT_EQ(starling({"submit", "--", "sh", "-c", "kill -9 $$"}).code, 137);
  CommandResult missing = starling({"submit", "--", "/no/such/program"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("/no/such/program"), std::string::npos);
  EXPECT_EQ(starling({"submit"}).code, 1);
}

TEST_F(Submit, LosesNothingOfALargeOutput) {
  start_head();
  CommandResult result =
      starling({"submit", "--", "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out.size(), 20000000u);
}

TEST_F(Submit, OutputArrivesAsItIsWritten) {
  start_head();
  BackgroundCommand submit({program(), "submit", "--", "sh", "-c", "echo first; sleep 100"});
  submit.wait_for_output("first");
  ::kill(submit.pid(), SIGINT);
  EXPECT_EQ(submit.finish().code, 130);
}

TEST_F(Submit, RunsADriverWithItsWorkers) {
  start_head();
  CommandResult result = starling({"submit", "--", self(), "driver", "exit", "3"});
  EXPECT_EQ(result.code, 3) << result.err;
  int first = 0, second = 0;
  ASSERT_EQ(std::sscanf(result.out.c_str(), "ready %d %d", &first, &second), 2) << result.out;
  EXPECT_TRUE(eventually([&] { return !process_runs(first) && !process_runs(second); }));
  // The driver went by the job it was submitted as.
  Json jobs = Json::parse(starling({"list", "jobs", "--json"}).out);
  ASSERT_EQ(jobs.size(), 1u);
  CommandResult logs = starling({"logs", jobs[0]["id"].get<std::string>().substr(0, 8)});
  EXPECT_EQ(logs.out, result.out);
}

TEST_F(Submit, CtrlCEndsDriverAndWorkers) {
  start_head();
  for (int signal : {SIGINT, SIGKILL}) {
    BackgroundCommand submit({program(), "submit", "--", self(), "driver", "hold"});
    std::string out = submit.wait_for_output("ready ");
    int first = 0, second = 0;
    ASSERT_EQ(std::sscanf(out.c_str(), "ready %d %d", &first, &second), 2);
    ::kill(submit.pid(), signal);
    EXPECT_EQ(submit.finish().code, 128 + signal);
    EXPECT_TRUE(eventually([&] { return !process_runs(first) && !process_runs(second); }));
  }
}

TEST_F(Submit, EndsWhenTheNodeStops) {
  start_head();
  BackgroundCommand submit({program(), "submit", "--", "sleep", "100"});
  ASSERT_TRUE(eventually([&] {
    return Json::parse(starling({"list", "jobs", "--json"}).out).size() == 1;
  }));
  EXPECT_EQ(starling({"stop", "--force"}).code, 0);
  CommandResult end = submit.finish();
  EXPECT_NE(end.code, 0);
  EXPECT_NE(end.err.find("error:"), std::string::npos);
}

}  // namespace
}  // namespace runtime
