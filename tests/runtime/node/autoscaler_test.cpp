// `starling start --head --autoscaler`: real nodes that come and go.
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "runtime/control/group_client.h"
#include "runtime/process/file_util.h"
#include "tests/runtime/node/cluster_fixture.h"
#include "tests/runtime/node/program.h"
#include "tests/support/pauses.h"

namespace runtime {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

constexpr auto kPatience = seconds(20);

class AutoscalerCluster : public ClusterTest {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string file = (files_.path() / name).string();
    std::ofstream(file) << text;
    ::chmod(file.c_str(), 0700);
    return file;
  }
  /// The head's node has one CPU; nodes of type w have one too, and a memory that no test asks for.
  std::string start_scaled(const std::string& type, const std::string& more = "", int max_nodes = 4,
                           std::vector<std::string> options = {}) {
    const std::string file =
        write("nodes.yaml",
              "max_nodes: " + std::to_string(max_nodes) +
                  "\nidle_timeout: 1s\nstart_timeout: 15s\ninterval: 100ms\ncooldown: {up: 0s, "
                  "down: 200ms}\nretry: {first: 200ms, max: 1s}\n" +
                  more + "\nnode_types:\n  w: {resources: {CPU: 1, memory: 1MiB}, max_nodes: 5" +
                  type + "}\n");
    options.insert(options.end(), {"--num-cpus", "1", "--autoscaler", file});
    return head_ = start_head(options);
  }
  /// A command that starts nodes here, and writes down what it is asked for. `first`: what it does
  /// before that.
  std::string provider(const std::string& first, const std::string& timeout = "10s") {
    const std::string folder = files_.path().string();
    const std::string script =
        write("provider.sh", "#!/bin/sh\ncd '" + folder +
                                 "'\necho \"$1 $STARLING_NODE_ID $STARLING_CAPACITY\" >> asked\n" +
                                 first + R"(
case $1 in
add)
  [ -e "node-$STARLING_NODE_ID" ] && exit 0
  eval "set -- $STARLING_START"
  # What is left in the command's process group is killed at its end: wait until the node has its own session.
  setsid sh -c 'echo $$ > "pid-$STARLING_NODE_ID"; mv "pid-$STARLING_NODE_ID" "node-$STARLING_NODE_ID"; exec "$STARLING_PROGRAM" "$@"' sh "$@" > "log-$STARLING_NODE_ID" 2>&1 &
  while [ ! -e "node-$STARLING_NODE_ID" ]; do sleep 0.01; done ;;
remove)
  [ -e "node-$STARLING_NODE_ID" ] || exit 0
  pid=$(cat "node-$STARLING_NODE_ID")
  kill "$pid" 2> /dev/null
  while kill -0 "$pid" 2> /dev/null; do sleep 0.05; done
  rm -f "node-$STARLING_NODE_ID" ;;
list)
  ids=
  for file in node-*; do [ -e "$file" ] && ids="$ids${ids:+, }\"${file#node-}\""; done
  echo "[$ids]" ;;
esac
)");
    return "provider: {type: command, command: [" + script + "], timeout: " + timeout + "}";
  }
  /// How often the command was asked for this, by node.
  std::map<std::string, int> asked(const std::string& operation) {
    std::map<std::string, int> counts;
    std::ifstream file(files_.path() / "asked");
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string which, id;
      words >> which >> id;
      if (which == operation) ++counts[id];
    }
    return counts;
  }
  Json status() {
    CommandResult result = starling({"autoscaler", "status", "--json", "--address", head_});
    return result.code == 0 ? Json::parse(result.out) : Json::object();
  }
  Json nodes() {
    return Json::parse(starling({"list", "nodes", "--json", "--address", head_}).out);
  }
  bool wait_for_nodes(std::size_t count) {
    return eventually([&] { return nodes().size() == count; }, kPatience);
  }
  /// Waits until a part of the status has this text.
  ::testing::AssertionResult says(const char* part, const std::string& text) {
    if (eventually(
            [&] { return status().value(part, Json()).dump().find(text) != std::string::npos; },
            kPatience))
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << status().dump(2);
  }
  std::unique_ptr<TestDriver> driver() {
    auto driver = TestDriver::connect(head_);
    EXPECT_TRUE(driver.ok()) << driver.status().message();
    return std::move(*driver);
  }
  /// Actors with one CPU each, one after the other.
  std::vector<ActorAddress> create(TestDriver& driver, std::size_t count) {
    std::vector<ActorAddress> actors;
    for (std::size_t i = 0; i < count; ++i) {
      ActorSpec spec;
      spec.actor = ActorId::random();
      spec.class_name = "Echo";
      spec.resources = {{"CPU", 1}};
      auto actor = driver.create(spec, kPatience);
      EXPECT_TRUE(actor.ok()) << actor.status().message() << status().dump(2);
      if (actor.ok()) actors.push_back(*actor);
    }
    return actors;
  }
  int child(const std::string& command) { return child_of(session_of(head_).pid, command); }
  /// Returns once there is another process of the head.
  void kill_head() {
    const int head = child("head");
    ::kill(head, SIGKILL);
    EXPECT_TRUE(eventually([&] { return child("head") > 0 && child("head") != head; }));
  }
  void TearDown() override {
    ClusterTest::TearDown();
    for (const auto& entry : std::filesystem::directory_iterator(files_.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with("node-"))
          << entry.path() << " was not removed when the cluster stopped";
    }
  }

  support::TemporaryFolder files_;
  std::string head_;
};

TEST_F(AutoscalerCluster, GrowsForActorsAndShrinksWhenTheyAreGone) {
  start_scaled("");
  auto program = driver();
  const std::vector<ActorAddress> actors = create(*program, 3);
  ASSERT_EQ(actors.size(), 3u);
  EXPECT_EQ((std::set<NodeId>{actors[0].node, actors[1].node, actors[2].node}).size(), 3u);
  EXPECT_EQ(nodes().size(), 3u);
  EXPECT_TRUE(program->kill(actors[1].actor).ok());
  EXPECT_TRUE(wait_for_nodes(2)) << status().dump(2);
  // The other one has been busy for longer than that one was idle.
  EXPECT_EQ(program->state(actors[2].actor)->phase, ActorPhase::kAlive);
  EXPECT_TRUE(program->kill(actors[2].actor).ok());
  EXPECT_TRUE(wait_for_nodes(1)) << status().dump(2);
  EXPECT_TRUE(says("decisions", "idle for"));
  EXPECT_EQ(program->state(actors[0].actor)->phase, ActorPhase::kAlive);
}

TEST_F(AutoscalerCluster, GrowsForAGroupAsAWhole) {
  start_scaled("", "", 4);
  auto program = driver();
  GroupSpec group;
  group.group = GroupId::random();
  group.strategy = GroupStrategy::kStrictSpread;
  group.bundles.assign(4, {{"CPU", 1}});
  const Deadline deadline = deadline_after(kPatience);
  auto placed = wait_for<GroupState>(program->loop(), deadline, [&](auto done) {
    GroupClient(program->client()).create(group, deadline, done);
  });
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  EXPECT_EQ(nodes().size(), 4u);
  // A fifth has no place: nothing is added for a part of what is wanted, and the status says why.
  GroupSpec more = group;
  more.group = GroupId::random();
  const Deadline short_deadline = deadline_after(seconds(2));
  auto refused = wait_for<GroupState>(program->loop(), short_deadline, [&](auto done) {
    GroupClient(program->client()).create(more, short_deadline, done);
  });
  EXPECT_EQ(refused.status().code(), ErrorCode::kResourceExhausted);
  auto again = std::thread([&] {
    const Deadline until = deadline_after(seconds(3));
    more.group = GroupId::random();
    (void)wait_for<GroupState>(program->loop(), until, [&](auto done) {
      GroupClient(program->client()).create(more, until, done);
    });
  });
  EXPECT_TRUE(says("demand", "max_nodes, 4, is reached"));
  again.join();
  EXPECT_EQ(nodes().size(), 4u);
  EXPECT_TRUE(
      wait_done(program->loop(), deadline_after(seconds(5)), [&](auto done) {
        GroupClient(program->client()).remove(group.group, deadline_after(seconds(5)), done);
      }).ok());
  EXPECT_TRUE(wait_for_nodes(1)) << status().dump(2);
}

TEST_F(AutoscalerCluster, SaysWhatNoNodeTypeHas) {
  start_scaled("");
  auto program = driver();
  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = "Echo";
  spec.resources = {{"CPU", 7}};
  auto waiting = std::thread([&] { EXPECT_FALSE(program->create(spec, seconds(4)).ok()); });
  EXPECT_TRUE(says("demand", "no node type has CPU 7; the nearest, 'w', lacks CPU 7 (has 1)"));
  CommandResult text = starling({"autoscaler", "status", "--address", head_});
  EXPECT_NE(text.out.find("1 have no place: no node type has CPU 7"), std::string::npos)
      << text.out;
  waiting.join();
  EXPECT_EQ(nodes().size(), 1u);
}

TEST_F(AutoscalerCluster, AKilledNodeIsReplaced) {
  start_scaled(", min_nodes: 2");
  ASSERT_TRUE(wait_for_nodes(3)) << status().dump(2);
  Json before = nodes();
  const Json& victim = before[before[0]["is_head"] == true ? 1 : 0];
  const std::string id = victim["labels"]["starling.io/autoscaler-id"];
  ::kill(victim["pid"].get<int>(), SIGKILL);
  EXPECT_TRUE(eventually(
      [&] {
        const Json now = nodes();
        return now.size() == 3 && std::none_of(now.begin(), now.end(), [&](const Json& node) {
                 return node["id"] == victim["id"];
               });
      },
      kPatience))
      << status().dump(2);
  EXPECT_TRUE(says("failures", id));
}

TEST_F(AutoscalerCluster, WhatADrainedNodeHasGetsAnotherNodeFirst) {
  start_scaled("");
  auto program = driver();
  ASSERT_EQ(create(*program, 1).size(), 1u);  // fills the head's node
  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = "Echo";
  spec.resources = {{"CPU", 1}};
  spec.max_restarts = -1;
  auto actor = program->create(spec, kPatience);
  ASSERT_TRUE(actor.ok()) << actor.status().message();
  const NodeId drained = actor->node;
  CommandResult told = starling(
      {"drain", drained.hex(), "--deadline", "8s", "--reason", "preemption", "--address", head_});
  ASSERT_EQ(told.code, 0) << told.err;
  EXPECT_TRUE(eventually(
      [&] {
        auto state = program->state(spec.actor);
        return state.ok() && state->phase == ActorPhase::kAlive && state->node != drained;
      },
      kPatience))
      << status().dump(2);
  EXPECT_TRUE(says("failures", "drained: preemption"));
  EXPECT_TRUE(wait_for_nodes(
      2));  // the head's and the new one, which was kept though idle until the actor came
}

TEST_F(AutoscalerCluster, OthersNodesCountAndStay) {
  start_scaled("", "", 2);
  start_node(head_, {"--num-cpus", "1"});
  auto program = driver();
  ASSERT_EQ(create(*program, 2).size(), 2u);
  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = "Echo";
  spec.resources = {{"CPU", 1}};
  EXPECT_FALSE(program->create(spec, seconds(2)).ok());  // max_nodes
  program.reset();
  const std::uint64_t idle_ms = unix_milliseconds();
  // Twice the idle timeout later it still counts them.
  EXPECT_TRUE(eventually(
      [&] { return status().value("reported_at_ms", std::uint64_t{0}) >= idle_ms + 2000; },
      kPatience))
      << status().dump(2);
  EXPECT_EQ(status()["other_nodes"], 2) << status().dump(2);
  EXPECT_EQ(nodes().size(), 2u);
}

TEST_F(AutoscalerCluster, AFailingCommandIsReportedAndBackedOff) {
  start_scaled("",
               provider("[ $1 = add ] && { echo 'quota of 0 instances exceeded' >&2; exit 3; }"));
  auto program = driver();
  ASSERT_EQ(create(*program, 1).size(), 1u);
  auto waiting = std::thread([&] {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Echo";
    spec.resources = {{"CPU", 1}};
    EXPECT_FALSE(program->create(spec, seconds(5)).ok());
  });
  EXPECT_TRUE(says("failures", "exited with code 3; it said: quota of 0 instances exceeded"));
  EXPECT_TRUE(says("demand", "quota of 0 instances"));
  waiting.join();
  EXPECT_EQ(nodes().size(), 1u);
  EXPECT_GT(asked("add").size(), 1u);   // again and again, each time another node
  EXPECT_LE(asked("add").size(), 10u);  // with pauses: 0.2, 0.4, 0.8, 1, 1 s...
  for (const auto& [id, times] : asked("add"))
    EXPECT_EQ(asked("remove")[id], 1) << id;  // whatever it had made of it
}

TEST_F(AutoscalerCluster, TheCommandIsToldWhatToStart) {
  start_scaled(", labels: {zone: \"it's b\"}", provider("[ $1 = add ] && cat > input"));
  auto program = driver();
  ASSERT_EQ(create(*program, 2).size(), 2u);
  auto text = read_file(files_.path() / "input", 1 << 16);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const Json input = Json::parse(*text, nullptr, false);
  ASSERT_TRUE(input.is_object()) << *text;
  EXPECT_EQ(input["type"], "w");
  EXPECT_EQ(input["capacity"], "on-demand");
  EXPECT_EQ(input["resources"]["CPU"], 1);
  EXPECT_EQ(input["labels"]["zone"], "it's b");
  EXPECT_EQ(input["address"], head_);
  EXPECT_TRUE(asked("add").contains(input["id"]));
  for (const Json& node : nodes()) {
    if (node["is_head"] == true) continue;
    EXPECT_EQ(node["labels"]["zone"], "it's b");  // as the shell took it from STARLING_START
    EXPECT_EQ(node["labels"]["starling.io/autoscaler-id"], input["id"]);
  }
}

TEST_F(AutoscalerCluster, AHangingCommandIsEnded) {
  start_scaled("", provider("[ $1 = add ] && [ ! -e hung ] && { touch hung; sleep 1000; }", "1s"));
  auto program = driver();
  EXPECT_EQ(create(*program, 2).size(), 2u);  // the second attempt
  EXPECT_TRUE(says("failures", "ran for more than 1"));
  EXPECT_EQ(asked("add").size(), 2u);
}

TEST_F(AutoscalerCluster, NodesOnDemandStandInForSpot) {
  start_scaled(", spot: {share: 1, fallback: 10m}",
               provider("[ \"$1 $STARLING_CAPACITY\" = 'add spot' ] && { echo 'no spot capacity' "
                        ">&2; exit 75; }"));
  auto program = driver();
  EXPECT_EQ(create(*program, 3).size(), 3u);
  for (const Json& node : nodes()) {
    if (node["is_head"] == false) {
      EXPECT_EQ(node["labels"]["starling.io/capacity"], "on-demand");
    }
  }
  EXPECT_EQ(asked("add").size(), 3u);  // one spot node was tried, and then no more
  EXPECT_EQ(asked("remove").size(), 0u);
  EXPECT_TRUE(says("decisions", "on demand instead of spot"));
}

TEST_F(AutoscalerCluster, KillingTheHeadAndTheAutoscalerLosesNoNodeAndDoublesNone) {
  start_scaled("", provider("[ $1 = add ] && until [ -e killed ]; do sleep 0.01; done"));
  auto program = driver();
  ASSERT_EQ(create(*program, 1).size(), 1u);
  std::vector<ActorAddress> actors;
  auto creating = std::thread([&] { actors = create(*program, 2); });
  ASSERT_TRUE(eventually([&] { return !asked("add").empty(); }, kPatience));
  kill_head();  // while the command runs
  ::kill(child("autoscaler"), SIGKILL);
  write("killed", "");
  creating.join();
  ASSERT_EQ(actors.size(), 2u);
  kill_head();
  ::kill(child("autoscaler"), SIGKILL);
  EXPECT_TRUE(says("nodes", "joined"));
  EXPECT_EQ(asked("add").size(), 2u);  // two nodes, each perhaps asked for twice
  EXPECT_EQ(nodes().size(), 3u);
  for (const ActorAddress& actor : actors) EXPECT_TRUE(program->kill(actor.actor).ok());
  EXPECT_TRUE(wait_for_nodes(1)) << status().dump(2);
  EXPECT_TRUE(eventually([&] { return asked("remove").size() == 2; }, kPatience))
      << status().dump(2);
}

TEST_F(AutoscalerCluster, KillingBothLosesNoLocalNodeEither) {
  start_scaled("");
  auto program = driver();
  const std::vector<ActorAddress> actors = create(*program, 3);
  ::kill(child("autoscaler"), SIGKILL);
  ::kill(child("head"), SIGKILL);
  for (std::size_t i = 1; i < actors.size(); ++i) EXPECT_TRUE(program->kill(actors[i].actor).ok());
  EXPECT_TRUE(wait_for_nodes(1)) << status().dump(2);
}

TEST_F(AutoscalerCluster, AHeadThatGoesOnWithItsJournalKnowsItsNodes) {
  const std::string journal = (files_.path() / "journal").string();
  start_scaled("", provider(""), 4, {"--journal", journal});
  const std::string port = head_.substr(head_.rfind(':') + 1);
  auto program = driver();
  ASSERT_EQ(create(*program, 3).size(), 3u);
  ASSERT_EQ(asked("add").size(), 2u);
  program.reset();
  ::kill(session_of(head_).pid,
         SIGKILL);     // the node next to the head, and with it head and autoscaler
  running_sessions();  // cleans up
  CommandResult started =
      starling({"start", "--head", "--port", port, "--num-cpus", "1", "--journal", journal,
                "--autoscaler", (files_.path() / "nodes.yaml").string()});
  ASSERT_EQ(started.code, 0) << started.err;
  EXPECT_TRUE(wait_for_nodes(1)) << status().dump(2);  // known, idle, removed
  EXPECT_EQ(asked("add").size(), 2u);
  EXPECT_TRUE(eventually([&] { return asked("remove").size() == 2; }, kPatience))
      << status().dump(2);
}

// Without waiting for the command that starts it: that may take longer than starling() waits.
TEST_F(AutoscalerCluster, AStopRemovesWhatIsOnItsWay) {
  start_scaled("", provider("[ $1 = add ] && [ -e hang ] && { sleep 1000; }", "100s"));
  auto program = driver();
  ASSERT_EQ(create(*program, 2).size(), 2u);
  std::ofstream(files_.path() / "hang") << "";
  auto waiting = std::thread([&] {
    create(*program, 0), (void)program->create("Echo", {{"CPU", 1}});
  });
  ASSERT_TRUE(eventually([&] { return asked("add").size() == 2; }, kPatience));
  CommandResult stopped = starling({"stop", "--force", "--address", head_});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  waiting.join();
  for (const auto& [id, times] : asked("add")) EXPECT_EQ(asked("remove")[id], 1) << id;
}

TEST_F(AutoscalerCluster, AStopNamesTheMachinesThatItCouldNotRemove) {
  start_scaled(
      "", "stop_timeout: 2s\n" +
              provider(
                  "[ $1 = remove ] && [ -e refuse ] && { echo 'API rate exceeded' >&2; exit 7; }"));
  auto program = driver();
  ASSERT_EQ(create(*program, 2).size(), 2u);
  ASSERT_EQ(asked("add").size(), 1u);
  const std::string id = asked("add").begin()->first;
  program.reset();
  std::ofstream(files_.path() / "refuse") << "";
  const CommandResult stopped = starling({"stop", "--address", head_});
  EXPECT_EQ(stopped.code, 1) << "something is left that costs";
  EXPECT_NE(stopped.out.find("stopped cluster"), std::string::npos) << stopped.out;
  for (const std::string& part : std::vector<std::string>{
           "could not remove 1 machine within stop_timeout, 2 s", id,
           "remove " + id +
               ": the provider's command exited with code 7; it said: API rate exceeded",
           "by hand: STARLING_NODE_ID=" + id + " STARLING_CLUSTER=", "provider.sh' 'remove'",
           "autoscaler.log"}) {
    EXPECT_NE(stopped.err.find(part), std::string::npos) << part << " is not in:\n" << stopped.err;
  }
  EXPECT_FALSE(asked("remove").empty());
  // As it says.
  std::filesystem::remove(files_.path() / "refuse");
  const std::size_t at = stopped.err.find("STARLING_NODE_ID=");
  const CommandResult by_hand =
      run_command({"sh", "-c", stopped.err.substr(at, stopped.err.find('\n', at) - at)});
  EXPECT_EQ(by_hand.code, 0) << by_hand.err;
  EXPECT_FALSE(std::filesystem::exists(files_.path() / ("node-" + id)));
}

TEST_F(AutoscalerCluster, AnAutoscalerThatDiesWhileItRemovesIsNotTakenForDone) {
  start_scaled("", provider("[ $1 = remove ] && [ -e hang ] && { touch removing; sleep 1000; }"));
  auto program = driver();
  ASSERT_EQ(create(*program, 2).size(), 2u);
  const std::string id = asked("add").begin()->first;
  program.reset();
  std::ofstream(files_.path() / "hang") << "";
  BackgroundCommand stop({AutoscalerCluster::program(), "stop", "--address", head_});
  ASSERT_TRUE(
      eventually([&] { return std::filesystem::exists(files_.path() / "removing"); }, kPatience));
  ::kill(child("autoscaler"), SIGKILL);
  const CommandResult stopped = stop.finish();
  EXPECT_EQ(stopped.code, 1);
  EXPECT_NE(stopped.err.find("has not said whether all of its machines are removed"),
            std::string::npos)
      << stopped.err;
  std::filesystem::remove(files_.path() / "hang");
  std::filesystem::remove(files_.path() /
                          ("node-" + id));  // its process has ended with the cluster
}

TEST_F(AutoscalerCluster, ACommandThatCannotBeRunIsRefusedByName) {
  const auto config = [&](const std::string& command) {
    return write("check.yaml", "max_nodes: 4\nprovider: {type: command, command: [" + command +
                                   "]}\nnode_types: {w: {resources: {CPU: 1}, max_nodes: 1}}\n");
  };
  const std::string plain = write("plain.sh", "#!/bin/sh\n"),
                    script = write("nodes.sh", "#!/bin/sh\n"),
                    foreign = write("foreign.sh", "#!/no/such/shell -e\n"),
                    windows = write("windows.sh", "#!/bin/sh\r\n");
  ::chmod(plain.c_str(), 0600);
  const std::string folder = (files_.path() / "folder").string();
  std::filesystem::create_directory(folder);
  const std::map<std::string, std::string> refused{
      {"./missing.sh", "missing.sh': it does not exist"},
      {"./plain.sh", "`chmod +x " + plain + "` allows that"},
      {"./folder", "it is not a file"},
      {"./foreign.sh", "its first line names '/no/such/shell', which does not exist"},
      {"./windows.sh", "carriage return"},
      {"no-such-command", "'no-such-command' is in no folder of PATH (/"}};
  for (const auto& [command, text] : refused) {
    const std::string file = config(command);
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"autoscaler", "check", file},
          {"start", "--head", "--port", "0", "--autoscaler", file}}) {
      const CommandResult result = starling(arguments);
      EXPECT_EQ(result.code, 1) << command;
      EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
      EXPECT_NE(result.err.find("check.yaml: provider.command: '"), std::string::npos)
          << result.err;
    }
  }
  for (const char* good : {"./nodes.sh, --zone, b", "sh"})
    EXPECT_EQ(starling({"autoscaler", "check", config(good)}).code, 0) << good;
  const support::ScopedVariable path("PATH", files_.path().c_str());
  EXPECT_EQ(starling({"autoscaler", "check", config("nodes.sh")}).code, 0);
  EXPECT_EQ(starling({"autoscaler", "check", config("plain.sh")}).code, 1);
}

TEST_F(AutoscalerCluster, OrphansOfTheProviderAreRemoved) {
  std::ofstream(files_.path() / "node-w-lost")
      << "999999999\n";  // of an earlier cluster whose records are gone
  start_scaled("", provider(""));
  EXPECT_TRUE(eventually([&] { return asked("remove").contains("w-lost"); }, kPatience))
      << status().dump(2);
}

TEST_F(AutoscalerCluster, AJobThatWaitsForWhatItTakesBringsANode) {
  start_scaled(", labels: {kind: jobs}");
  const CommandResult result = starling({"submit", "--num-cpus", "1", "--label", "kind=jobs",
                                         "--address", head_, "--", "echo", "ran"});
  EXPECT_EQ(result.out, "ran\n") << result.err;
  EXPECT_TRUE(wait_for_nodes(1)) << status().dump(2);  // it is retired when nothing uses it
}

TEST_F(AutoscalerCluster, MistakesAreRefusedByName) {
  const std::string file = write("bad.yaml", "max_nodes: 4\nmax_node: 3\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"autoscaler", "check", file},
        {"start", "--head", "--port", "0", "--autoscaler", file}}) {
    CommandResult refused = starling(command);
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.err.find("bad.yaml:2: unknown key 'max_node'"), std::string::npos)
        << refused.err;
  }
  EXPECT_NE(starling({"start", "--head", "--port", "0", "--autoscaler", file + "x"})
                .err.find("bad.yamlx"),
            std::string::npos);
  const std::string good =
      write("good.yaml", "max_nodes: 4\nnode_types: {w: {resources: {CPU: 1}, max_nodes: 1}}\n");
  CommandResult checked = starling({"autoscaler", "check", good});
  EXPECT_EQ(checked.code, 0) << checked.err;
  head_ = start_head();
  CommandResult none = starling({"autoscaler", "status"});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("no autoscaler runs in this cluster"), std::string::npos) << none.err;
  EXPECT_NE(starling({"start", "--address", head_, "--autoscaler", good})
                .err.find("--autoscaler requires --head"),
            std::string::npos);
}

}  // namespace
}  // namespace runtime
