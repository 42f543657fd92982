// Placement on real nodes: GPUs by number, gangs that lose a node, drivers that race, heads that
// are killed, and what people are told.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "runtime/control/group_client.h"
#include "tests/runtime/node/cluster_fixture.h"
#include "tests/runtime/node/program.h"

namespace runtime {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A variable that a process was started with; "(none)": it was not.
std::string variable_of(int pid, const std::string& name) {
  std::istringstream variables(file_text("/proc/" + std::to_string(pid) + "/environ"));
  for (std::string line; std::getline(variables, line, '\0');) {
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  }
  return "(none)";
}

class Placement : public ClusterTest {
 protected:
  std::unique_ptr<TestDriver> connect(const std::string& head) {
    auto driver = TestDriver::connect(head);
    EXPECT_TRUE(driver.ok()) << driver.status().message();
    return driver.ok() ? std::move(*driver) : nullptr;
  }
  static ActorSpec actor(ResourceMap resources) {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Echo";
    spec.resources = std::move(resources);
    return spec;
  }
  static GroupSpec group(GroupStrategy strategy, std::size_t bundles,
                         ResourceMap each = {{"CPU", 1}}) {
    GroupSpec spec;
    spec.group = GroupId::random();
    spec.strategy = strategy;
    spec.bundles.assign(bundles, each);
    return spec;
  }
  static Result<GroupState> create(TestDriver& driver, const GroupSpec& spec,
                                   milliseconds timeout = seconds(20)) {
    const Deadline deadline = deadline_after(timeout);
    return wait_for<GroupState>(driver.loop(), deadline + seconds(1), [&](auto done) {
      GroupClient(driver.client()).create(spec, deadline, done);
    });
  }
  static Result<GroupState> query(TestDriver& driver, GroupId id, const std::string& name = "",
                                  const std::string& space = "", bool wait = false) {
    const Deadline deadline = deadline_after(seconds(20));
    return wait_for<GroupState>(driver.loop(), deadline, [&](auto done) {
      GroupClient(driver.client()).query(id, name, space, wait, deadline, done);
    });
  }
  static Status remove(TestDriver& driver, GroupId id) {
    const Deadline deadline = deadline_after(seconds(20));
    return wait_done(driver.loop(), deadline,
                     [&](auto done) { GroupClient(driver.client()).remove(id, deadline, done); });
  }
  static NodeInfo node_at(TestDriver& driver, const std::string& address) {
    auto state = driver.cluster();
    for (const NodeInfo& node : state.ok() ? state->nodes : std::vector<NodeInfo>()) {
      if (node.address == address) return node;
    }
    return {};
  }
  static void expect_nothing_reserved(TestDriver& driver) {
    const auto state = driver.cluster();
    ASSERT_TRUE(state.ok()) << state.status().message();
    for (const NodeInfo& node : state->nodes)
      EXPECT_EQ(node.available, node.resources) << node.address;
  }
  /// The head's process: a child of its node.
  static int head_process(int node) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string pid = entry.path().filename().string();
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string stat = file_text("/proc/" + pid + "/stat"),
                        command = file_text("/proc/" + pid + "/cmdline");
      const std::size_t end = stat.rfind(')');
      if (end == std::string::npos || std::atoi(stat.c_str() + end + 4) != node) continue;
      if (command.find(std::string("\0head\0", 6)) != std::string::npos) return std::stoi(pid);
    }
    return 0;
  }
  /// kill -9, and waits until another one answers.
  void kill_head(TestDriver& driver, const std::string& head) {
    const int node = session_of(head).pid, old = head_process(node);
    ASSERT_NE(old, 0);
    ::kill(old, SIGKILL);
    ASSERT_TRUE(eventually([&] { return head_process(node) != 0 && head_process(node) != old; },
                           seconds(20)));
    ASSERT_TRUE(eventually([&] { return driver.cluster().ok(); }, seconds(20)));
  }
  Json listed(const std::string& kind) {
    return Json::parse(starling({"list", kind, "--json"}).out);
  }
};

TEST_F(Placement, GpusAreExclusiveAndGivenBack) {
  auto driver = connect(start_head({"--num-cpus", "4", "--gpus", "2"}));
  ActorSpec first = actor({{"GPU", 1}}), half = actor({{"GPU", 0.5}}),
            other_half = actor({{"GPU", 0.5}});
  auto one = driver->create(first), two = driver->create(half), three = driver->create(other_half);
  ASSERT_TRUE(one.ok() && two.ok() && three.ok());
  EXPECT_EQ(variable_of(one->pid, "CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(variable_of(two->pid, "CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(variable_of(three->pid, "CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(driver->state(half.actor)->gpus, std::vector<std::uint32_t>{1});
  EXPECT_EQ(driver->create(actor({{"GPU", 1}}), milliseconds(300)).status().code(),
            ErrorCode::kResourceExhausted);
  ::kill(one->pid, SIGKILL);
  auto next = driver->create(actor({{"GPU", 1}}));
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_EQ(variable_of(next->pid, "CUDA_VISIBLE_DEVICES"), "0");
  auto none = driver->create(actor({{"CPU", 1}}));
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(variable_of(none->pid, "CUDA_VISIBLE_DEVICES"),
            variable_of(::getpid(), "CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(driver->create(actor({{"GPU", 1.5}})).status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(Placement, ANodesOwnDevicesAreWhatItsActorsSee) {
  support::ScopedVariable own("CUDA_VISIBLE_DEVICES", "5,GPU-77aa");
  auto driver = connect(start_head({"--gpus", "2"}));
  GroupSpec spec = group(GroupStrategy::kPack, 1, {{"GPU", 2}});
  auto placed = create(*driver, spec);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_EQ(placed->gpus, (std::vector<std::vector<std::uint32_t>>{{0, 1}}));
  ActorSpec both = actor({{"GPU", 2}});
  both.bundle = BundleSlot{spec.group, 0};
  both.env = {{"CUDA_VISIBLE_DEVICES", "all of them"}};
  auto made = driver->create(both);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(variable_of(made->pid, "CUDA_VISIBLE_DEVICES"), "5,GPU-77aa");
}

TEST_F(Placement, GpusAndGroupsAreRightAcrossAHeadThatIsKilled) {
  const std::string head = start_head({"--num-cpus", "4", "--gpus", "4"});
  auto driver = connect(head);
  ActorSpec first = actor({{"GPU", 1}}), inside = actor({{"GPU", 1}});
  auto one = driver->create(first);
  ASSERT_TRUE(one.ok());
  GroupSpec spec = group(GroupStrategy::kPack, 1, {{"GPU", 2}});
  spec.name = "pair";
  ASSERT_TRUE(create(*driver, spec).ok());
  inside.bundle = BundleSlot{spec.group, 0};
  auto two = driver->create(inside);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(variable_of(two->pid, "CUDA_VISIBLE_DEVICES"), "1");
  kill_head(*driver, head);
  auto found = query(*driver, {}, "pair");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(found->placed);
  auto three = driver->create(actor({{"GPU", 1}}));
  ASSERT_TRUE(three.ok()) << three.status().message();
  EXPECT_EQ(variable_of(three->pid, "CUDA_VISIBLE_DEVICES"), "3");
  EXPECT_EQ(driver->create(actor({{"GPU", 1}}), milliseconds(300)).status().code(),
            ErrorCode::kResourceExhausted);
  ActorSpec second = actor({{"GPU", 1}});
  second.bundle = inside.bundle;
  auto four = driver->create(second);
  ASSERT_TRUE(four.ok()) << four.status().message();
  EXPECT_EQ(variable_of(four->pid, "CUDA_VISIBLE_DEVICES"), "2");
  EXPECT_TRUE(remove(*driver, spec.group).ok());
  EXPECT_TRUE(eventually([&] {
    return driver->state(four->actor)->phase == ActorPhase::kDead &&
           driver->state(two->actor)->phase == ActorPhase::kDead;
  }));
  ASSERT_TRUE(eventually([&] { return node_at(*driver, head).available["GPU"] == 2; }));
  auto pair = driver->create(actor({{"GPU", 2}}));
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(variable_of(pair->pid, "CUDA_VISIBLE_DEVICES"), "1,2");
}

TEST_F(Placement, AGangMovesAsAWholeWhenItsNodeDies) {
  const std::string head = start_head({"--num-cpus", "0"});
  const std::string stays = start_node(head, {"--num-cpus", "2"}),
                    dies = start_node(head, {"--num-cpus", "2"});
  auto driver = connect(head);
  GroupSpec spec = group(GroupStrategy::kStrictSpread, 2);
  auto placed = create(*driver, spec);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  const NodeId lost = node_at(*driver, dies).node;
  const std::uint32_t on_lost = placed->nodes[0] == lost ? 0 : 1;
  ActorSpec survivor = actor({{"CPU", 0.5}}), taken = survivor, mortal = survivor;
  taken.actor = ActorId::random();
  mortal.actor = ActorId::random();
  survivor.max_restarts = taken.max_restarts = 1;
  survivor.bundle = mortal.bundle = BundleSlot{spec.group, 1 - on_lost};
  taken.bundle = BundleSlot{spec.group, on_lost};
  for (const ActorSpec& each : {survivor, taken, mortal}) ASSERT_TRUE(driver->create(each).ok());
  ::kill(session_of(dies).pid, SIGKILL);
  // One node is not enough: it waits as a whole, and holds nothing meanwhile.
  ASSERT_TRUE(eventually(
      [&] {
        return query(*driver, spec.group)->is_torn() &&
               node_at(*driver, stays).available["CPU"] == 2;
      },
      seconds(20)));
  EXPECT_EQ(driver->state(survivor.actor)->phase, ActorPhase::kPending);
  auto dead = driver->state(mortal.actor);
  EXPECT_EQ(dead->phase, ActorPhase::kDead);
  EXPECT_NE(dead->death.text.find("its placement group is placed again as a whole"),
            std::string::npos)
      << dead->death.text;
  EXPECT_NE(dead->death.text.find("no restart left"), std::string::npos) << dead->death.text;
  EXPECT_NE(starling({"why", spec.group.short_hex()}).out.find("being placed again"),
            std::string::npos);
  EXPECT_EQ(listed("placement-groups")[0]["state"], "rescheduling");
  start_node(head, {"--num-cpus", "2"});
  auto again = query(*driver, spec.group, "", "", true);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->placements, 2u);
  for (const ActorSpec& each : {survivor, taken}) {
    ASSERT_TRUE(eventually([&] { return driver->state(each.actor)->phase == ActorPhase::kAlive; },
                           seconds(20)))
        << driver->state(each.actor)->pending_reason;
    EXPECT_EQ(driver->state(each.actor)->restarts, 1u);
    EXPECT_EQ(driver->state(each.actor)->node, again->nodes[each.bundle->index]);
  }
}

TEST_F(Placement, DriversThatRaceForTheSameNodesAllGetTheirs) {
  const std::string head = start_head({"--num-cpus", "1"});
  for (int i = 0; i < 3; ++i) start_node(head, {"--num-cpus", "1"});
  constexpr int kDrivers = 6, kRounds = 12;
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  // Any two need more than there is: one that held a part and waited for the rest would wait for
  // ever.
  for (int i = 0; i < kDrivers; ++i) {
    threads.emplace_back([&, i] {
      auto driver = connect(head);
      for (int round = 0; driver && round < kRounds; ++round) {
        auto made = create(
            *driver,
            group((i + round) % 2 ? GroupStrategy::kSpread : GroupStrategy::kStrictSpread, 3),
            seconds(60));
        ASSERT_TRUE(made.ok()) << made.status().message();
        ASSERT_TRUE(remove(*driver, made->spec.group).ok());
        ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kDrivers * kRounds);
  auto driver = connect(head);
  expect_nothing_reserved(*driver);
}

TEST_F(Placement, ANodeThatDiesUnderwayLeavesNothingReserved) {
  const std::string head = start_head({"--num-cpus", "8"});
  const std::string dies = start_node(head, {"--num-cpus", "8"});
  start_node(head, {"--num-cpus", "8"});
  auto driver = connect(head);
  std::vector<GroupSpec> specs;
  std::atomic<int> answered = 0;
  constexpr int kGroups = 50;  // 15 CPUs, of the 16 that stay
  for (int i = 0; i < kGroups; ++i) {
    specs.push_back(group(GroupStrategy::kSpread, 3, {{"CPU", 0.1}}));
    GroupClient(driver->client())
        .create(specs.back(), deadline_after(seconds(20)),
                [&](const Result<GroupState>&) { ++answered; });
    if (i == kGroups / 2) ::kill(session_of(dies).pid, SIGKILL);
  }
  EXPECT_TRUE(eventually([&] { return answered == kGroups; })) << answered;
  ASSERT_TRUE(eventually([&] { return driver->cluster()->nodes.size() == 2; }, seconds(20)));
  for (const GroupSpec& spec : specs) {
    auto state =
        query(*driver, spec.group, "", "", true);  // those that had a bundle there are placed again
    ASSERT_TRUE(state.ok()) << state.status().message();
    ASSERT_EQ(state->nodes.size(), 3u);
  }
  for (const GroupSpec& spec : specs) EXPECT_TRUE(remove(*driver, spec.group).ok());
  expect_nothing_reserved(*driver);
}

TEST_F(Placement, DetachedGroupsOutliveTheirDriverAndHaveNames) {
  const std::string head = start_head({"--num-cpus", "2"});
  GroupSpec spec = group(GroupStrategy::kPack, 2);
  spec.name = "trainers";
  spec.name_space = "lab";
  spec.detached = true;
  {
    auto driver = connect(head);
    ASSERT_TRUE(create(*driver, spec).ok());
    GroupSpec brief = group(GroupStrategy::kPack, 1, {{"CPU", 0.1}});
    brief.name = "brief";
    EXPECT_EQ(create(*driver, brief, milliseconds(300)).status().code(),
              ErrorCode::kResourceExhausted);
  }
  auto driver = connect(head);
  auto found = query(*driver, {}, "trainers", "lab");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->spec, spec);
  auto mistyped = query(*driver, {}, "trainer", "lab").status();
  EXPECT_EQ(mistyped.code(), ErrorCode::kNotFound);
  EXPECT_NE(mistyped.message().find("trainers"), std::string::npos) << mistyped.message();
  Json groups = listed("placement-groups");
  ASSERT_EQ(groups.size(), 1u);
  for (const char* key : {"id", "name", "strategy", "state", "bundles", "pending_reason"})
    EXPECT_TRUE(groups[0].contains(key)) << key;
  EXPECT_EQ(groups[0]["state"], "placed");
  EXPECT_EQ(groups[0]["name"], "trainers");
  EXPECT_TRUE(remove(*driver, spec.group).ok());
  EXPECT_EQ(remove(*driver, spec.group).code(), ErrorCode::kNotFound);
}

TEST_F(Placement, LabelsPreferencesAndSpreading) {
  const std::string head = start_head({"--num-cpus", "4", "--label", "zone=a"});
  const std::string other =
      start_node(head, {"--num-cpus", "4", "--label", "zone=b", "--label", "spot=yes"});
  auto driver = connect(head);
  const NodeId a = node_at(*driver, head).node, b = node_at(*driver, other).node;
  GroupSpec spec = group(GroupStrategy::kPack, 2);
  spec.bundle_labels = {{{"zone", "in(b, c)"}}, {{"spot", "!*"}}};
  auto placed = create(*driver, spec);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_EQ(placed->nodes, (std::vector<NodeId>{b, a}));
  ActorSpec preferred = actor({{"CPU", 3}});
  preferred.node = b;
  preferred.node_is_preferred = true;
  EXPECT_EQ(driver->create(preferred)->node, b);
  preferred.actor = ActorId::random();
  EXPECT_EQ(driver->create(preferred)->node, a);
  EXPECT_TRUE(remove(*driver, spec.group).ok());
  std::map<NodeId, int> count;
  for (int i = 0; i < 4; ++i) {
    ActorSpec spread = actor({});
    spread.scheduling = ActorScheduling::kSpread;
    ++count[driver->create(spread)->node];
  }
  EXPECT_EQ(count[a], 2);
  EXPECT_EQ(count[b], 2);
  EXPECT_EQ(starling({"start", "--address", head, "--label", "zone=!b"}).code, 1);
}

TEST_F(Placement, WhatWaitsIsExplained) {
  const std::string head = start_head({"--num-cpus", "2", "--gpus", "1"});
  auto driver = connect(head);
  GroupSpec spec = group(GroupStrategy::kStrictSpread, 2);
  spec.name = "gang";
  ActorSpec large = actor({{"CPU", 1}, {"GPU", 4}});
  large.name = "learner";
  std::thread waits([&] {
    auto waiter = connect(head);
    const Status status = create(*waiter, spec, seconds(4)).status();
    EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
    EXPECT_NE(status.message().find("a node for each bundle"), std::string::npos)
        << status.message();
  });
  std::thread actor_waits([&] {
    auto waiter = connect(head);
    const Status status = waiter->create(large, seconds(4)).status();
    EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
    EXPECT_NE(status.message().find("lacks GPU 4 (has 1) even when idle"), std::string::npos)
        << status.message();
  });
  EXPECT_TRUE(eventually(
      [&] { return listed("actors").size() == 1 && listed("placement-groups").size() == 1; }));
  EXPECT_NE(listed("actors")[0]["pending_reason"].get<std::string>().find("could ever hold it"),
            std::string::npos);
  EXPECT_NE(
      listed("placement-groups")[0]["pending_reason"].get<std::string>().find("not even idle"),
      std::string::npos);
  const std::string short_id = large.actor.hex().substr(0, 8);
  for (const std::string& what : {short_id, std::string("learner")}) {
    CommandResult why = starling({"why", what});
    EXPECT_EQ(why.code, 0) << why.err;
    EXPECT_NE(why.out.find("GPU 4 (has 1)"), std::string::npos) << why.out;
    EXPECT_NE(why.out.find("start one with CPU 1, GPU 4"), std::string::npos) << why.out;
  }
  EXPECT_NE(starling({"why", "gang"}).out.find("a node for each bundle"), std::string::npos);
  EXPECT_NE(
      starling({"why", node_at(*driver, head).node.short_hex()}).out.find("offers CPU 2, GPU 1"),
      std::string::npos);
  CommandResult mistyped = starling({"why", "learnr"});
  EXPECT_EQ(mistyped.code, 1);
  EXPECT_NE(mistyped.err.find("did you mean 'learner'?"), std::string::npos) << mistyped.err;
  EXPECT_EQ(starling({"why", "ffffffffffffffffffff"}).code, 1);
  waits.join();
  actor_waits.join();
}

TEST_F(Placement, WhatCannotBeMeantIsRefused) {
  auto driver = connect(start_head({"--num-cpus", "2"}));
  EXPECT_EQ(driver->create(actor({{"CPU", -1}})).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(create(*driver, group(GroupStrategy::kPack, 1, {{"CPU", -1}})).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(create(*driver, group(GroupStrategy::kPack, 0)).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(create(*driver, group(GroupStrategy::kPack, 1, {{"GPU", 2.5}})).status().code(),
            ErrorCode::kInvalidArgument);
  GroupSpec labels = group(GroupStrategy::kPack, 1);
  labels.bundle_labels = {{{"zone", "in("}}};
  EXPECT_EQ(create(*driver, labels).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(remove(*driver, GroupId::random()).code(), ErrorCode::kNotFound);
  EXPECT_EQ(query(*driver, GroupId::random()).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(starling({"list", "placement-groups", "--json"}).out, "[]\n");
}

}  // namespace
}  // namespace runtime
