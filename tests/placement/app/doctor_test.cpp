// The doctor's findings on machines that have faults, each with its cure; and on a real cluster.
#include "placement/app/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "placement/app/chrome_trace.h"
#include "runtime/observe/activity_layout.h"
#include "runtime/process/process_info.h"
#include "tests/runtime/node/cluster_fixture.h"

namespace runtime {
namespace {

using State = placement::Finding::State;

placement::MachineFacts healthy() {
  placement::MachineFacts facts;
  facts.cpus = facts.cpus_online = 8;
  facts.memory_bytes = facts.memory_available_bytes = 16ull << 30;
  facts.shm_bytes = 8ull << 30;
  facts.open_files = facts.open_files_hard = 1 << 20;
  facts.locked_bytes = UINT64_MAX;
  facts.session_free_bytes = 100ull << 30;
  facts.session_root = "/tmp/s";
  facts.kernel = "6.1.0";
  facts.glibc = "2.36";
  facts.starling = "0.1.0";
  return facts;
}

const placement::Finding& find(const std::vector<placement::Finding>& findings,
                               const std::string& check) {
  auto found =
      std::find_if(findings.begin(), findings.end(),
                   [&](const placement::Finding& finding) { return finding.check == check; });
  EXPECT_NE(found, findings.end()) << check;
  static const placement::Finding none;
  return found == findings.end() ? none : *found;
}

TEST(Doctor, AHealthyMachineHasNothing) {
  for (const placement::Finding& finding : placement::judge(healthy())) {
    EXPECT_EQ(finding.state, State::kGood) << finding.check << ": " << finding.what;
    EXPECT_EQ(finding.cure, "") << finding.check;
  }
}

TEST(Doctor, EachIllnessHasItsCure) {
  struct Case {
    const char* check;
    State state;
    const char* cure;
    void (*spoil)(placement::MachineFacts&);
  };
  const Case cases[] = {
      {"cores", State::kNote, "--cpus", [](placement::MachineFacts& f) { f.cpus = 2; }},
      {"memory", State::kWarning, "--object-store-memory",
       [](placement::MachineFacts& f) { f.memory_available_bytes = 100 << 20; }},
      {"shared memory", State::kWarning, "--shm-size",
       [](placement::MachineFacts& f) { f.shm_bytes = 64 << 20; }},
      {"open files", State::kWarning, "ulimit -n",
       [](placement::MachineFacts& f) { f.open_files = 20'000; }},
      {"open files", State::kFailure, "limits.conf",
       [](placement::MachineFacts& f) { f.open_files = f.open_files_hard = 1024; }},
      {"processes", State::kWarning, "ulimit -u",
       [](placement::MachineFacts& f) { f.processes = 100; }},
      {"session folder", State::kWarning, "--spill-dir",
       [](placement::MachineFacts& f) { f.session_free_bytes = 0; }},
      {"port", State::kWarning, "--port",
       [](placement::MachineFacts& f) { f.port_user = "another program listens"; }},
      {"clock", State::kNote, "chrony",
       [](placement::MachineFacts& f) { f.clock_synchronised = false; }},
      {"kernel", State::kFailure, "5.11",
       [](placement::MachineFacts& f) { f.kernel = "4.19.0-amd64"; }},
      {"CUDA driver", State::kFailure, "--gpus all",
       [](placement::MachineFacts& f) { f.gpus = 1; }},
      {"CUDA driver", State::kFailure, "nvidia-smi",
       [](placement::MachineFacts& f) {
         f.driver = "580.1";
         f.cuda = 13'000;
       }},
      {"CUDA driver", State::kWarning, "driver 580",
       [](placement::MachineFacts& f) {
         f.gpus = 2;
         f.cuda = 12'040;
         f.driver = "550.54";
       }},
      {"NCCL", State::kNote, "libnccl2",
       [](placement::MachineFacts& f) {
         f.gpus = 2;
         f.cuda = 13'000;
         f.driver = "580.95";
       }},
      {"locked memory", State::kWarning, "ulimit -l",
       [](placement::MachineFacts& f) {
         f.gpus = 2;
         f.locked_bytes = 8 << 20;
       }},
  };
  for (const Case& ill : cases) {
    placement::MachineFacts facts = healthy();
    ill.spoil(facts);
    const auto findings = placement::judge(facts);
    const placement::Finding& finding = find(findings, ill.check);
    EXPECT_EQ(finding.state, ill.state) << ill.check << ": " << finding.what;
    EXPECT_NE(finding.cure.find(ill.cure), std::string::npos) << ill.check << ": " << finding.cure;
  }
}

TEST(Doctor, NamesTheBrokenAndTheSlowPair) {
  std::vector<placement::PairSpeed> pairs;
  for (const char* from : {"a:1", "b:2", "c:3"}) {
    for (const char* to : {"a:1", "b:2", "c:3"}) {
      if (std::string(from) != to) pairs.push_back({from, to, 1e9, 1e-4});
    }
  }
  for (const placement::Finding& finding : placement::judge_pairs(pairs))
    EXPECT_EQ(finding.state, State::kGood) << finding.what;
  pairs[1].bytes_per_s = 1e8;
  pairs[4].error = "connection refused";
  const auto findings = placement::judge_pairs(pairs);
  ASSERT_EQ(findings.size(), 6u);
  EXPECT_EQ(findings[1].state, State::kWarning);
  EXPECT_NE(findings[1].what.find("a:1 -> c:3"), std::string::npos) << findings[1].what;
  EXPECT_NE(findings[1].what.find("100 MB/s"), std::string::npos) << findings[1].what;
  EXPECT_EQ(findings[4].state, State::kFailure);
  EXPECT_NE(findings[4].what.find("c:3 -> a:1: connection refused"), std::string::npos)
      << findings[4].what;
  EXPECT_NE(findings[4].cure.find("--advertise"), std::string::npos);
  EXPECT_EQ(findings[0].state, State::kGood);
  pairs[0] = {.from = "a:1", .to = "b:2", .skipped = true};
  const auto late = placement::judge_pairs(pairs);
  EXPECT_EQ(late[0].state, State::kNote) << late[0].what;
  EXPECT_NE(late[0].what.find("not measured"), std::string::npos) << late[0].what;
  EXPECT_NE(late[0].cure.find("--bytes"), std::string::npos);
  EXPECT_EQ(late[1].state, State::kWarning)
      << "the pair that was not measured counts as one of no speed";
}

TEST(Doctor, JudgesClocks) {
  const auto findings = placement::judge_clocks({{"a:1", 0.01}, {"b:2", -2}, {"c:3", 60}});
  EXPECT_EQ(findings[0].state, State::kGood);
  EXPECT_EQ(findings[1].state, State::kWarning);
  EXPECT_NE(findings[1].what.find("ahead"), std::string::npos);
  EXPECT_EQ(findings[2].state, State::kFailure);
  EXPECT_NE(findings[2].what.find("60.000 s behind"), std::string::npos) << findings[2].what;
}

TEST(ProcessInfo, ReadsStatWhateverTheNameIs) {
  const std::string rest = " S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 7 0 100 4096 3 0";
  const ProcessInfo info = parse_process_stat("12 (a) b (c))" + rest);
  EXPECT_EQ(info.name, "a) b (c)");
  EXPECT_EQ(info.state, "sleeping");
  EXPECT_EQ(info.threads, 7u);
  EXPECT_DOUBLE_EQ(info.cpu_seconds, 300.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  for (const char* broken : {"", "12", "12 (a", "12 (a)", "12 (a) S", "12 (a) S 1 2 3"})
    EXPECT_EQ(parse_process_stat(broken).state, "") << broken;
  EXPECT_EQ(process_info(::getpid()).state, "running");
  EXPECT_EQ(process_info(-1).state, "");
}

TEST(ChromeTrace, CorrectsClocksAndKeepsProcessesApart) {
  support::TemporaryFolder folder;
  std::FILE* file = std::fopen(folder.file("t.json").c_str(), "w");
  placement::ChromeTrace trace(file);
  const auto event_at = [](std::uint64_t begin, activity::EventKind kind) {
    activity::TraceEvent event;
    event.kind = kind;
    event.begin_ns = begin;
    event.duration_ns = 2'000;
    event.flow = 7;
    event.method = 1;
    return std::string(reinterpret_cast<const char*>(&event), sizeof event);
  };
  // The second node's clock is a second behind; its process has the same number as one of the
  // first's.
  trace.add("aaaa", 0, 1'000'000'000,
            {12, "driver", {"?", "C.f"}, event_at(1'000'010'000, activity::EventKind::kCalled), 0});
  trace.add("bbbb", 1'000'000'000, 1'000'000'000,
            {12, "C 1", {"?", "C.f"}, event_at(15'000, activity::EventKind::kRan), 3});
  trace.add("bbbb", 1'000'000'000, 1'000'000'000, {12, "C 1", {"?"}, "short", 0});
  trace.add("bbbb", 0, 1'000'000'000,
            {12, "C 1", {"?"}, event_at(5, activity::EventKind::kRan), 0});  // before it began
  EXPECT_TRUE(trace.end().ok());
  std::fclose(file);
  EXPECT_EQ(trace.calls(), 1u);
  EXPECT_EQ(trace.lost(), 3u);
  std::FILE* in = std::fopen(folder.file("t.json").c_str(), "r");
  const auto json = nlohmann::json::parse(in);
  std::fclose(in);
  double sent = -1, ran = -1;
  std::set<int> processes;
  for (const auto& event : json["traceEvents"]) {
    processes.insert(event["pid"].get<int>());
    if (event["ph"] == "s") sent = event["ts"];
    if (event["ph"] == "f") ran = event["ts"];
  }
  EXPECT_DOUBLE_EQ(sent, 10);
  EXPECT_DOUBLE_EQ(ran, 15);
  EXPECT_EQ(processes.size(), 2u);
}

class DoctorCluster : public ClusterTest {};

TEST_F(DoctorCluster, MeasuresEachPairOfNodes) {
  const std::string head = start_head();
  const std::string second = start_node(head), third = start_node(head);
  CommandResult result = starling({"doctor", "--cluster", "--json", "--bytes", "4MiB"});
  const auto report = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << result.out << result.err;
  int connections = 0, clocks = 0;
  bool reduced = false;
  for (const auto& finding : report["findings"]) {
    const std::string check = finding["check"], state = finding["state"], what = finding["what"];
    EXPECT_TRUE(state == "ok" || !finding["cure"].get<std::string>().empty()) << finding.dump();
    if (check == "connection") {
      ++connections;
      EXPECT_NE(state, "failure") << what;
      EXPECT_NE(what.find("MB/s"), std::string::npos) << what;
    }
    clocks += check.starts_with("clock of ") && state == "ok";
    if (check == "all-reduce") {
      reduced = true;
      const bool there =
          std::filesystem::exists(std::filesystem::path(program()).parent_path() / "starling-rl");
      EXPECT_EQ(state, there ? "ok" : "note") << what;
      EXPECT_NE(what.find(there ? "over 3 nodes: 4 MiB"
                                : "starling-rl, which has Gloo and uses NCCL, is not next to"),
                std::string::npos)
          << what;
      if (there) {
        EXPECT_NE(what.find("MB/s per node"), std::string::npos) << what;
      }
      if (there && what.starts_with("Gloo")) {
        EXPECT_NE(what.find("; not by NCCL: "), std::string::npos) << what;
      }
    }
  }
  EXPECT_EQ(connections, 6);
  EXPECT_EQ(clocks, 3);
  EXPECT_TRUE(reduced) << result.out;
}

TEST_F(DoctorCluster, ANodeThatDoesNotAnswerIsNamed) {
  const std::string head = start_head();
  const std::string stuck = start_node(head);
  const int pid = session_of(stuck).pid;
  ::kill(pid, SIGSTOP);
  CommandResult result = starling({"doctor", "--cluster", "--bytes", "1MiB", "--address", head});
  ::kill(pid, SIGCONT);
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.out.find("failure"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(stuck), std::string::npos) << result.out;
  // It was silent for longer than its lease, so it joins again; what stops the cluster has to find
  // it.
  const auto is_back = [&] {
    const auto nodes = nlohmann::json::parse(
        starling({"list", "nodes", "--state", "alive", "--json", "--address", head}).out, nullptr,
        false);
    return nodes.is_array() && nodes.size() == 2 && running_sessions().size() == 2;
  };
  EXPECT_TRUE(eventually(is_back, std::chrono::seconds(30)));
}

TEST_F(DoctorCluster, WithoutAClusterItSaysHowToGetOne) {
  CommandResult result = starling({"doctor", "--cluster"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.out.find("starling start --head"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace runtime
