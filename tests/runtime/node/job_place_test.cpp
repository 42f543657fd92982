// Jobs that reserve resources, and wait for them.
#include <algorithm>
#include <csignal>
#include <memory>
#include <set>

#include "tests/runtime/node/job_fixture.h"

namespace runtime {
namespace {

/// Jobs that reserve something.
class JobPlaceTest : public Job {
 protected:
  Json list(const std::string& what) {
    CommandResult result = starling({"list", what, "--json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? Json::parse(result.out) : Json::array();
  }
  /// Submits in the background; waits until it is known what the job waits for.
  std::unique_ptr<BackgroundCommand> submit_waiting(std::vector<std::string> arguments, Json& job) {
    const std::size_t known = list("jobs").size();
    arguments.insert(arguments.begin(), {program(), "submit"});
    auto command = std::make_unique<BackgroundCommand>(std::move(arguments));
    Json jobs;
    EXPECT_TRUE(eventually([&] { return (jobs = list("jobs")).size() > known && find(jobs, job); },
                           std::chrono::seconds(20)))
        << jobs;
    return command;
  }
  static bool find(const Json& jobs, Json& waiting) {
    for (const Json& job : jobs) {
      if (job["pending_reason"] != "") return waiting = job, true;
    }
    return false;
  }
  ::testing::AssertionResult everything_is_free() {
    Json nodes;
    const bool is_free = eventually([&] {
      nodes = list("nodes");
      return std::all_of(nodes.begin(), nodes.end(),
                         [](const Json& node) { return node["available"] == node["resources"]; });
    });
    return is_free ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << nodes;
  }
};

TEST_F(JobPlaceTest, WaitsForTheNodeThatHasIt) {
  const std::string head = start_head({"--num-cpus", "1"});
  Json waiting;
  auto command = submit_waiting({"--num-cpus", "3", "--resources", "{\"x\": 1}", "--label",
                                 "zone=in(a, b)", "--", "sh", "-c", "echo in $PWD; exit 7"},
                                waiting);
  EXPECT_EQ(waiting["state"], "pending");
  EXPECT_EQ(waiting["resources"], Json({{"CPU", 3}, {"x", 1}}));
  EXPECT_NE(waiting["pending_reason"].get<std::string>().find("zone"), std::string::npos)
      << waiting;
  const std::string id = waiting["id"];
  EXPECT_NE(starling({"why", id}).out.find("it waits: "), std::string::npos)
      << starling({"why", id}).out;
  EXPECT_NE(starling({"job", "status", id}).out.find("waits "), std::string::npos);
  EXPECT_EQ(waiting["started"], "");
  EXPECT_NE(starling({"job", "logs", id}).err.find("has not begun, so that it has no log yet"),
            std::string::npos)
      << starling({"job", "logs", id}).err;
  BackgroundCommand logs({program(), "job", "logs", "-f", id});  // waits with it
  start_node(head, {"--num-cpus", "4", "--resources", "{\"x\": 1}", "--label", "zone=b"});
  CommandResult result = command->finish();
  EXPECT_EQ(result.code, 7) << result.err;
  EXPECT_TRUE(result.out.starts_with("in ")) << result.out;
  EXPECT_EQ(logs.finish().out, result.out);
  EXPECT_NE(starling({"why", id}).out.find("failed: "), std::string::npos)
      << starling({"why", id}).out;
  EXPECT_NE(result.err.find("job " + id.substr(0, 8)), std::string::npos)
      << result.err;  // what it waited for was said
  const Json ended = job(id);
  EXPECT_EQ(ended["exit_code"], 7);
  for (const Json& node : list("nodes"))
    EXPECT_EQ(node["id"] == ended["node"], node["is_head"] == false);
  EXPECT_TRUE(everything_is_free());
  EXPECT_TRUE(list("placement-groups").empty());
}

TEST_F(JobPlaceTest, HasTheGpusThatItTakesAndGivesThemBack) {
  support::ScopedVariable devices("CUDA_VISIBLE_DEVICES", "4,6");
  start_head({"--num-cpus", "4", "--num-gpus", "2"});
  const std::string held = starling({"submit", "--detach", "--num-gpus", "1", "--", "sh", "-c",
                                     "echo $CUDA_VISIBLE_DEVICES; exec sleep 1000"})
                               .last_line();
  std::string first;
  ASSERT_TRUE(eventually([&] {
    return (first = starling({"job", "logs", held}).out).ends_with("\n");
  })) << held;
  CommandResult other =
      starling({"submit", "--num-gpus", "1", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(std::set<std::string>({first, other.out}), std::set<std::string>({"4\n", "6\n"}))
      << other.err;
  Json waiting;
  auto both =
      submit_waiting({"--num-gpus", "2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"}, waiting);
  ASSERT_EQ(starling({"job", "stop", held}).code, 0);
  const CommandResult result = both->finish();
  EXPECT_EQ(result.out, "4,6\n") << result.err;
  EXPECT_TRUE(everything_is_free());
}

TEST_F(JobPlaceTest, IsGivenUpByItsSubmitterByStopAndByItsTime) {
  start_head({"--num-cpus", "2"});
  Json waiting;
  auto stopped = submit_waiting({"--num-cpus", "9", "--", "true"}, waiting);
  EXPECT_EQ(starling({"job", "stop", waiting["id"]}).code, 0);
  EXPECT_EQ(stopped->finish().code, 1);
  EXPECT_EQ(job(waiting["id"])["state"], "stopped");
  for (int signal : {SIGINT, SIGKILL}) {
    Json given_up;
    auto command = submit_waiting({"--num-cpus", "9", "--", "true"}, given_up);
    ::kill(command->pid(), signal);
    command->finish();
    EXPECT_EQ(wait_for_end(given_up["id"])["state"], "stopped");
  }
  CommandResult late =
      starling({"submit", "--num-cpus", "9", "--place-timeout", "300ms", "--", "true"});
  EXPECT_EQ(late.code, 1);
  EXPECT_NE(late.err.find("CPU"), std::string::npos) << late.err;
  EXPECT_NE(late.err.find("node "), std::string::npos) << late.err;
  EXPECT_TRUE(list("placement-groups").empty());
  EXPECT_TRUE(everything_is_free());
}

TEST_F(JobPlaceTest, StillWaitsWhenTheHeadWasKilled) {
  const std::string head = start_head({"--num-cpus", "1"});
  Json waiting;
  auto command = submit_waiting({"--num-cpus", "2", "--", "echo", "ran"}, waiting);
  const int process = head_of(session_of(head).pid);
  ASSERT_GT(process, 0);
  ::kill(process, SIGKILL);
  start_node(head, {"--num-cpus", "2"});
  const CommandResult result = command->finish();
  EXPECT_EQ(result.out, "ran\n") << result.err;
  EXPECT_EQ(wait_for_end(waiting["id"])["state"], "succeeded");
  EXPECT_TRUE(everything_is_free());
}

TEST_F(JobPlaceTest, StaysOnANodeThatIsDrained) {
  const std::string head = start_head({"--num-cpus", "1"});
  start_node(head, {"--num-cpus", "2"});
  start_node(head, {"--num-cpus", "2"});
  const std::string held =
      starling({"submit", "--detach", "--num-cpus", "2", "--", "sleep", "1000"}).last_line();
  const std::string node = job(held)["node"];
  BackgroundCommand drain({program(), "drain", node, "--deadline", "60s", "--reason", "test"});
  // It is not reserved again elsewhere, as a gang of actors would be.
  ASSERT_TRUE(eventually(
      [&] {
        return starling({"why", node}).out.find("1 job") != std::string::npos ||
               starling({"list", "nodes"}).out.find("1 job") != std::string::npos;
      },
      std::chrono::seconds(20)))
      << starling({"list", "nodes"}).out;
  const Json groups = list("placement-groups");
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0]["bundles"][0]["node"], node) << groups;
  EXPECT_EQ(job(held)["state"], "running");
  EXPECT_EQ(starling({"job", "stop", held}).code, 0);
  EXPECT_TRUE(eventually([&] { return list("nodes").size() == 2; }, std::chrono::seconds(20)));
}

TEST_F(JobPlaceTest, RefusesWhatCannotBeMeant) {
  start_head({"--num-cpus", "1"});
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--num-cpus", "-1"}, "CPU"},
      {{"--resources", "[1]"}, "--resources"},
      {{"--label", "zone=a"}, "--num-cpus"},
      {{"--num-cpus", "1", "--label", "zone"}, "--label"},
      {{"--num-cpus", "1", "--label", "zone=in(a"}, "zone"},
      {{"--num-cpus", "1", "--place-timeout", "soon"}, "--place-timeout"},
      {{"--num-cpus", "0"}, "--num-cpus"},
      {{"--num-cpus", ""}, "--num-cpus"},
      {{"--num-cpus", "abc"}, "parsing abc"},  // and not what stands behind it
      {{"--num-cpus", "1e300"}, "1e+300; it must be a number from 0 to 1e14"},
      {{"--resources", ""}, "--resources is not a JSON object"},
      {{"--resources", "{\"tape\": 1, \"tape\": 2}"}, "--resources has 'tape' twice"},
      {{"--resources", "{\"a\\u0000b\": 1}"}, "control characters"},
      {{"--resources", "{\"" + std::string(5000, 'x') + "\": 1}"}, "5000 bytes, of at most 256"},
      {{"--num-cpus", "1", "--label", "zone=!!b"}, "one '!' is enough"},
      {{"--num-cpus", "1", "--place-timeout", "0"}, "above zero"},
      {{"--num-cpus", "1", "--env", "STARLING_ADDRESS=x"}, "STARLING_ADDRESS"},
      // Before it waits for a place that it could make no use of.
      {{"--num-cpus", "99", "--working-dir", "/nowhere"}, "/nowhere"},
  };
  for (const auto& [options, named] : cases) {
    std::vector<std::string> arguments{"submit"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "true"});
    const CommandResult result = starling(arguments);
    EXPECT_NE(result.code, 0) << options[1];
    EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
  }
  EXPECT_TRUE(list("placement-groups").empty());
  for (const Json& job : list("jobs")) EXPECT_EQ(job["state"], "failed") << job;
}

TEST_F(JobPlaceTest, LooksForAnotherPlaceWhenItsNodeGoesBeforeItBegan) {
  const std::string head = start_head({"--num-cpus", "1"});
  for (const bool drained : {true, false}) {
    SCOPED_TRACE(drained ? "drained" : "killed");
    Json waiting;
    auto command = submit_waiting({"--num-cpus", "2", "--", "echo", "ran"}, waiting);
    ::kill(command->pid(), SIGSTOP);
    const std::string first = start_node(head, {"--num-cpus", "2"});
    const auto place = [&] {
      const Json groups = list("placement-groups");
      return groups.size() == 1 && groups[0]["state"] == "placed"
                 ? groups[0]["bundles"][0]["node"].get<std::string>()
                 : "";
    };
    ASSERT_TRUE(eventually([&] { return !place().empty(); }, std::chrono::seconds(20)));
    const std::string lost = place();
    const std::string second = start_node(head, {"--num-cpus", "2"});
    if (drained) {
      EXPECT_EQ(starling({"drain", first, "--deadline", "60s"}).code, 0);
      ASSERT_TRUE(
          eventually([&] { return !place().empty() && place() != lost; }, std::chrono::seconds(20)))
          << list("placement-groups");
    } else {
      ::kill(session_of(first).pid, SIGKILL);  // and the command does not know yet
    }
    ::kill(command->pid(), SIGCONT);
    const CommandResult result = command->finish();
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, "ran\n") << result.err;
    EXPECT_EQ(wait_for_end(waiting["id"])["state"], "succeeded");
    EXPECT_NE(job(waiting["id"])["node"], lost);
    EXPECT_EQ(starling({"stop", "--address", second}).code, 0);
    EXPECT_TRUE(eventually([&] { return list("nodes").size() == 1; }, std::chrono::seconds(20)));
    EXPECT_TRUE(everything_is_free());
  }
}

TEST_F(JobPlaceTest, SaysThatItsSubmitterKeepsItWaiting) {
  const std::string head = start_head({"--num-cpus", "1"});
  Json waiting;
  auto command = submit_waiting({"--num-cpus", "2", "--", "echo", "ran"}, waiting);
  ::kill(command->pid(), SIGSTOP);
  start_node(head, {"--num-cpus", "2"});
  const auto reason = [&] { return job(waiting["id"])["pending_reason"].get<std::string>(); };
  EXPECT_TRUE(eventually(
      [&] {
        return reason().find("the command that submitted it has still to start it there") !=
               std::string::npos;
      },
      std::chrono::seconds(20)))
      << reason();
  for (const Json& node : list("nodes"))
    EXPECT_EQ(node["available"]["CPU"], node["is_head"] ? 1 : 0)
        << "what is all taken is there, with nothing of it";
  ::kill(command->pid(), SIGCONT);
  EXPECT_EQ(command->finish().out, "ran\n");
  EXPECT_TRUE(everything_is_free());
}

}  // namespace
}  // namespace runtime
