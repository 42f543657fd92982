// Seeing what actors do: stacks, top, timelines, metrics by class.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cluster_fixture.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

using Json = nlohmann::json;

class ObserveTest : public ClusterTest {
 protected:
  CommandResult starling(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), STARLING_BIN_DIR "/starling");
    arguments.insert(arguments.end(), {"--address", address()});
    return run(arguments);
  }
  /// The beginning of the output is for people on stderr, perhaps; JSON begins with a brace or a
  /// bracket.
  static Json json_of(const std::string& output) {
    return Json::parse(output.substr(output.find_first_of("[{")), nullptr, false);
  }
};

/// The fields that the guide's table names: what there is of them always, and what there may be.
struct Documented {
  std::set<std::string> always, sometimes;
};
std::map<std::string, Documented> documented_fields() {
  std::map<std::string, Documented> fields;
  const auto words = [](const std::string& cell) {
    std::set<std::string> found;
    std::string inside = cell.find('`') == std::string::npos ? "" : cell.substr(cell.find('`') + 1);
    std::istringstream text(inside.substr(0, inside.find('`')));
    for (std::string word; text >> word;) found.insert(word);
    return found;
  };
  std::ifstream guide(STARLING_SOURCE_DIR "/docs/guide/observe.md");
  bool in_table = false;
  for (std::string line; std::getline(guide, line);) {
    if (line.starts_with("| of |"))
      in_table = true;
    else if (in_table && !line.starts_with("|"))
      break;
    if (!in_table || line.starts_with("| of |") || line.starts_with("|--")) continue;
    std::vector<std::string> cells;
    std::istringstream row(line.substr(2));
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell);
    if (cells.size() != 3) {
      ADD_FAILURE() << line;
      continue;
    }
    fields[cells[0].substr(0, cells[0].find_last_not_of(' ') + 1)] = {words(cells[1]),
                                                                      words(cells[2])};
  }
  return fields;
}

/// What is printed next to what the guide says of it.
class PrintedFields {
 public:
  void expect_documented(const std::string& kind, const Json& printed) {
    ASSERT_TRUE(fields_.contains(kind)) << kind;
    ASSERT_TRUE(printed.is_object()) << kind << ": " << printed;
    const Documented& documented = fields_.at(kind);
    seen_.insert(kind);
    for (const std::string& field : documented.always)
      EXPECT_TRUE(printed.contains(field))
          << "the guide names " << field << " of " << kind << ": " << printed;
    for (const auto& [field, value] : printed.items()) {
      EXPECT_TRUE(documented.always.contains(field) || documented.sometimes.contains(field))
          << "the guide does not name " << field << " of " << kind;
      if (documented.sometimes.contains(field)) seen_.insert(kind + "." + field);
    }
  }
  void expect_each(const std::string& kind, const Json& list) {
    EXPECT_TRUE(list.is_array() && !list.empty()) << kind << ": " << list;
    for (const Json& item : list) expect_documented(kind, item);
  }
  /// And the guide names nothing that was not there.
  void expect_all_seen() const {
    for (const auto& [kind, documented] : fields_) {
      EXPECT_TRUE(seen_.contains(kind)) << kind << " was not printed";
      for (const std::string& field : documented.sometimes)
        EXPECT_TRUE(seen_.contains(kind + "." + field))
            << field << " of " << kind << " was not printed";
    }
  }

 private:
  const std::map<std::string, Documented> fields_ = documented_fields();
  std::set<std::string> seen_;
};

/// The node that joined the head's; empty: none has.
std::string joined_node(const Result<ClusterState>& state) {
  if (!state.ok()) return "";
  for (const NodeInfo& node : state->nodes) {
    if (!node.is_head) return node.node.hex();
  }
  return "";
}

TEST_F(ObserveTest, TheGuideNamesTheFieldsThatArePrinted) {
  // Something of everything.
  auto idle = counter(0, {.name = "idle"}), dead = counter();
  ASSERT_TRUE(rt_->kill(dead).ok());
  auto keeper = broker("keeper");
  auto large = rt_->put(std::vector<float>(1 << 20));
  ASSERT_TRUE(large.ok());
  ASSERT_TRUE(rt_->get(keeper.call(&Broker::keep, *large), 20s).ok());
  GroupSpec group;
  group.bundles = {{{"CPU", 0.1}}};
  ASSERT_TRUE(rt_->groups().create(group).get().ok());
  const std::string job = starling({"submit", "--detach", "--", "true"}).output;
  Command second({STARLING_BIN_DIR "/starling", "start", "--address", address(), "--num-cpus", "1",
                  "--block"});
  std::string drained;
  ASSERT_TRUE(eventually([&] {
    drained = joined_node(rt_->cluster().state());
    return !drained.empty();
  })) << second.output();
  ActorOptions there;
  there.node = *NodeId::from_hex(drained);
  auto held_up = counter(0, there);
  auto sleeping = held_up.call(&Counter::sleep_ms, 60'000);

  PrintedFields printed;
  const auto print = [&](std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const CommandResult result = starling(arguments);
    return result.output.find_first_of("[{") == std::string::npos ? Json() : json_of(result.output);
  };
  const Json stack = print({"stack", "idle"});
  printed.expect_documented("stack", stack);
  printed.expect_each("threads", stack["threads"]);
  Command drain({STARLING_BIN_DIR "/starling", "drain", drained, "--deadline", "50s", "--address",
                 address()});
  Json nodes;
  ASSERT_TRUE(eventually([&] {
    nodes = print({"list", "nodes", "--state", "draining"});
    return nodes.is_array() && !nodes.empty();
  })) << drain.output();
  printed.expect_each("nodes", nodes);
  printed.expect_documented("drain", nodes[0]["drain"]);
  printed.expect_each("nodes", print({"list", "nodes"}));
  printed.expect_each("actors", print({"list", "actors"}));
  printed.expect_each("workers", print({"list", "workers"}));
  const Json groups = print({"list", "placement-groups"});
  printed.expect_each("placement-groups", groups);
  printed.expect_each("bundles", groups[0]["bundles"]);
  const Json jobs = print({"list", "jobs"});
  printed.expect_each("jobs", jobs);
  EXPECT_EQ(print({"job", "list"}).size(), jobs.size());
  printed.expect_documented("job status", print({"job", "status", jobs[0]["id"]}));
  const Json objects = print({"list", "objects"});
  printed.expect_documented("list objects", objects);
  printed.expect_each("objects", objects["objects"]);
  for (const Json& object : objects["objects"])
    for (const Json& one : object["borrowers"]) printed.expect_documented("borrowers", one);
  printed.expect_each("stores", objects["stores"]);
  const Json status = print({"status"});
  printed.expect_documented("status", status);
  printed.expect_each("nodes", status["nodes"]);
  printed.expect_each("actors", status["actors"]);
  printed.expect_each("placement-groups", status["placement_groups"]);
  printed.expect_each("jobs", status["jobs"]);
  const Json doctor = print({"doctor"});
  printed.expect_documented("doctor", doctor);
  printed.expect_each("findings", doctor["findings"]);
  printed.expect_all_seen();
}

bool all_answered([[maybe_unused]] const Json& report) {
#ifdef __SANITIZE_THREAD__  // whose own thread blocks all signals
  return true;
#else
  return report.at("note") == "";
#endif
}

TEST_F(ObserveTest, AStackShowsTheMethodThatRuns) {
  auto busy = counter(0, {.name = "busy"});
  auto sleeping = busy.call(&Counter::sleep_ms, 6000);
  Json report;
  // Threads that have just been made answer no signals yet.
  ASSERT_TRUE(eventually([&] {
    report = json_of(starling({"stack", "busy", "--json"}).output);
    return report.is_object() && report["threads"].size() > 0 &&
           report.dump().find("Counter.sleep_ms") != std::string::npos && all_answered(report);
  })) << report.dump(2);
  bool found = false;
  for (const Json& thread : report["threads"]) {
    if (thread["running"] != "Counter.sleep_ms") continue;
    found = true;
    EXPECT_EQ(thread["actor"], busy.id().hex());
    EXPECT_EQ(thread["tid"], busy.pid()) << "an actor in its own process runs on the main thread";
    EXPECT_GT(thread["running_ms"], 0);
    const std::string frames = thread["frames"].dump();
    EXPECT_NE(frames.find("Counter::sleep_ms(int)"), std::string::npos) << frames;
    EXPECT_NE(frames.find("main +0x"), std::string::npos) << frames;
  }
  EXPECT_TRUE(found) << report.dump(2);
  EXPECT_EQ(report["pid"], busy.pid());
  EXPECT_EQ(get(sleeping), 6000) << "and the call went on";
  const auto idle = starling({"stack", busy.id().hex().substr(0, 12)});
  EXPECT_EQ(idle.exit_code, 0) << idle.output;
  EXPECT_NE(idle.output.find("runs no method now"), std::string::npos) << idle.output;
}

TEST_F(ObserveTest, AStoppedProcessGetsAClearAnswer) {
  auto stopped = counter(0, {.name = "stopped"});
  auto sleeping = stopped.call(&Counter::sleep_ms, 15'000);
  ASSERT_TRUE(eventually([&] {
    return starling({"stack", "stopped"}).output.find("runs Counter.sleep_ms") != std::string::npos;
  }));
  ::kill(stopped.pid(), SIGSTOP);
  ASSERT_TRUE(eventually([&] {
    return starling({"stack", "stopped"}).output.find(", stopped") != std::string::npos;
  }));
  const auto shown = starling({"stack", "stopped"});
  ::kill(stopped.pid(), SIGCONT);
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_NE(shown.output.find("SIGSTOP"), std::string::npos) << shown.output;
  EXPECT_NE(shown.output.find("kill -CONT " + std::to_string(stopped.pid())), std::string::npos)
      << shown.output;
  EXPECT_NE(shown.output.find("runs Counter.sleep_ms"), std::string::npos)
      << "what it ran is known all the same: " << shown.output;
  EXPECT_EQ(rt_->wait(std::vector{sleeping}, 1, 20s).ready.size(), 1u) << "it goes on";
}

TEST_F(ObserveTest, StackNamesWhatItCannotFind) {
  const auto unknown = starling({"stack", "missing"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.output.find("'missing'"), std::string::npos) << unknown.output;
  auto dead = counter(0, {.name = "dead"});
  ASSERT_TRUE(rt_->kill(dead).ok());
  const auto gone = starling({"stack", dead.id().hex()});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_NE(gone.output.find("is dead"), std::string::npos) << gone.output;
}

TEST_F(ObserveTest, SharedActorsShowWhatEachRuns) {
  auto first = counter(0, {.name = "first", .isolation = Isolation::kShared});
  auto second = counter(0, {.name = "second", .isolation = Isolation::kShared});
  ASSERT_EQ(first.pid(), second.pid());
  auto sleeping = second.call(&Counter::sleep_ms, 15'000);
  ASSERT_TRUE(eventually([&] {
    return starling({"stack", "second"}).output.find("runs Counter.sleep_ms for") !=
           std::string::npos;
  })) << starling({"stack", "second"}).output;
  const std::string idle = starling({"stack", "first"}).output;
  EXPECT_NE(idle.find("it runs no method now"), std::string::npos) << idle;
  EXPECT_NE(idle.find("of " + second.id().short_hex()), std::string::npos)
      << "its process runs another's: " << idle;
}

TEST_F(ObserveTest, TopShowsTheBusiestActors) {
  auto busy = counter();
  auto idle = counter();
  std::atomic<bool> over{false};
  std::thread caller([&] {
    while (!over) (void)rt_->get(busy.call(&Counter::add, 1), 20s);
  });
  CommandResult shown;
  const bool first = eventually([&] {
    shown = starling({"top", "--once"});
    const std::size_t a = shown.output.find(busy.id().short_hex()),
                      b = shown.output.find(idle.id().short_hex());
    return a != std::string::npos && b != std::string::npos && a < b;
  });
  over = true;
  caller.join();
  EXPECT_TRUE(first) << shown.output;
  EXPECT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_NE(shown.output.find(address()), std::string::npos) << shown.output;
  EXPECT_EQ(shown.output.find('\x1b'), std::string::npos) << "no terminal, no escapes";
}

TEST_F(ObserveTest, ATimelineHasCallsWithTheirArrows) {
  auto callee = counter();
  get(callee.call(&Counter::add, 1));
  const std::string file = folder_.file("trace.json");
  Command recording({STARLING_BIN_DIR "/starling", "timeline", "-o", file, "--seconds", "2",
                     "--address", address()});
  while (true) {
    get(callee.call(&Counter::add, 1));
    int status = 0;
    if (std::filesystem::exists(file) &&
        ::waitpid(recording.pid(), &status, WNOHANG | WNOWAIT) == 0 && recording.output().empty()) {
      support::pace(2ms);
      continue;
    }
    if (!recording.output().empty()) break;
  }
  const auto ended = recording.wait();
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  std::ifstream in(file);
  const Json trace = Json::parse(in, nullptr, false);
  ASSERT_TRUE(trace.is_object()) << "not JSON";
  ASSERT_TRUE(trace["traceEvents"].is_array());
  std::map<std::string, double> sent, ran;  // by flow
  std::size_t slices = 0;
  std::set<std::string> processes;
  for (const Json& event : trace["traceEvents"]) {
    for (const char* field : {"name", "ph", "pid", "tid"})
      ASSERT_TRUE(event.contains(field)) << event.dump();
    const std::string phase = event["ph"];
    if (phase == "M") {
      processes.insert(event["args"]["name"].get<std::string>());
      continue;
    }
    ASSERT_TRUE(event["ts"].is_number()) << event.dump();
    ASSERT_GE(event["ts"], 0);
    if (phase == "X") {
      ASSERT_TRUE(event["dur"].is_number()) << event.dump();
      if (event["name"] == "Counter.add") {
        ++slices;
        EXPECT_EQ(event["pid"], callee.pid());
      }
    }
    if (phase == "s") sent[event["id"]] = event["ts"];
    if (phase == "f") ran[event["id"]] = event["ts"];
  }
  EXPECT_GT(slices, 10u);
  EXPECT_GE(processes.size(), 2u) << "the driver and the worker";
  std::size_t joined = 0;
  for (const auto& [flow, at] : sent) {
    auto end = ran.find(flow);
    if (end == ran.end()) continue;
    ++joined;
    EXPECT_GE(end->second, at) << "a call runs after it was sent";
  }
  EXPECT_GT(joined, 10u);
}

TEST_F(ObserveTest, MetricsCountCallsByClass) {
  auto counted = counter();
  for (int i = 0; i < 20; ++i) get(counted.call(&Counter::add, 1));
  EXPECT_FALSE(rt_->get(counted.call(&Counter::fail, "on purpose"), 20s).ok());
  std::string text;
  ASSERT_TRUE(eventually([&] {
    text = starling({"metrics"}).output;
    return text.find("starling_call_seconds_count{class=\"Counter\"} 21") != std::string::npos;
  })) << text;
  EXPECT_NE(text.find("starling_call_failures_total{class=\"Counter\"} 1"), std::string::npos)
      << text;
  EXPECT_NE(text.find("starling_class_actors{class=\"Counter\"} 1"), std::string::npos) << text;
  EXPECT_EQ(text.find(counted.id().short_hex()), std::string::npos) << "no labels by actor";
  // What an ended process has done stays counted.
  ASSERT_TRUE(rt_->kill(counted).ok());
  ASSERT_TRUE(eventually([&] {
    text = starling({"metrics"}).output;
    return text.find("starling_class_actors{class=\"Counter\"} 0") != std::string::npos;
  })) << text;
  EXPECT_NE(text.find("starling_call_seconds_count{class=\"Counter\"} 21"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace runtime::test
