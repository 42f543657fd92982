#include "placement/app/cli_doctor.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "placement/app/cli_nodes.h"
#include "placement/app/cli_text.h"
#include "placement/app/doctor.h"
#include "runtime/core/clock.h"
#include "runtime/process/child_process.h"

namespace placement {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

/// With more nodes than this not all pairs are measured, but each node with the next one and with
/// the one half way round.
constexpr std::size_t kAllPairsMax = 8;
constexpr std::chrono::seconds kReachPatience{
    8};  // half of it for connecting: a lost packet or two do not make a pair a broken one
constexpr std::chrono::seconds kMeasurePatience{20};
constexpr std::chrono::seconds kMeasureAllPatience{300};
constexpr std::chrono::seconds kAllReducePatience{180};

std::vector<std::pair<std::size_t, std::size_t>> pairs_of(std::size_t nodes) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t from = 0; from < nodes; ++from) {
    for (std::size_t step = 1; step < nodes; ++step) {
      if (nodes <= kAllPairsMax || step == 1 || step == nodes / 2)
        pairs.emplace_back(from, (from + step) % nodes);
    }
  }
  return pairs;
}

/// First who reaches whom, all at the same time: however many pairs are broken, that takes the time
/// of one. Then how fast the others are, one after the other, so that they do not share what is
/// measured.
std::vector<PairSpeed> measure_pairs(NodeSet& set, std::uint64_t bytes) {
  const auto pairs = pairs_of(set.nodes().size());
  std::vector<NodeSet::Question> questions;
  for (const auto& [from, to] : pairs)
    questions.push_back({from, runtime::control::MeasurePeer{set.nodes()[to].info.address, 1}});
  const auto reached = set.ask_each(std::move(questions), kReachPatience);
  std::vector<PairSpeed> speeds;
  const runtime::Deadline end = runtime::deadline_after(kMeasureAllPatience);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    NodeSet::Entry& source = set.nodes()[pairs[i].first];
    const std::string& target = set.nodes()[pairs[i].second].info.address;
    PairSpeed speed{source.info.address, target, 0, 0,
                    reached[i].ok() ? "" : reached[i].status().message()};
    if (speed.error.empty() && runtime::steady_now() >= end) {
      speed.skipped = true;
    } else if (speed.error.empty()) {
      auto measured =
          observe<runtime::Numbers>(set.loop(), *source.client,
                                    runtime::control::MeasurePeer{target, bytes}, kMeasurePatience);
      if (!measured.ok())
        speed.error = measured.status().message();
      else
        speed.bytes_per_s = (*measured)["bytes_per_s"],
        speed.round_trip_s = (*measured)["round_trip_s"];
    }
    speeds.push_back(std::move(speed));
  }
  return speeds;
}

std::vector<std::pair<std::string, double>> clock_offsets(NodeSet& set) {
  std::vector<std::pair<std::string, double>> behind;
  const auto now = [] { return static_cast<double>(runtime::unix_milliseconds()) * 1e-3; };
  for (NodeSet::Entry& entry : set.nodes()) {
    if (!entry.client) continue;
    const double asked = now();
    auto answer = observe<runtime::Numbers>(set.loop(), *entry.client,
                                            runtime::control::ReadClock{}, std::chrono::seconds(2));
    if (answer.ok())
      behind.emplace_back(entry.info.address, (asked + now()) / 2 - (*answer)["wall_s"]);
  }
  return behind;
}

struct Ran {
  int exit_code = -1;
  std::string output;
};

/// What a program says and how it ends, within that time.
runtime::Result<Ran> run_program(runtime::EventLoop& loop, const runtime::ProcessSpec& spec,
                                 std::chrono::seconds patience) {
  constexpr std::size_t kOutputMax = 64 << 10;
  auto ran = std::make_shared<Ran>();
  runtime::Event ended(loop);
  runtime::ProcessHandlers handlers;
  handlers.on_output = [ran](bool, std::string_view bytes) {
    ran->output.append(bytes);
    if (ran->output.size() > kOutputMax)
      ran->output.erase(0, ran->output.size() - kOutputMax);  // the last line counts
  };
  handlers.on_exit = [ran, &ended](const runtime::DeathCause& cause) {
    ran->exit_code = cause.exit_code;
    ended.set();
  };
  auto process = runtime::on_loop(
      loop, [&] { return runtime::ChildProcess::start(loop, spec, std::move(handlers)); });
  if (!process.ok()) return process.status();
  const bool is_over = loop.run_until(ended, runtime::deadline_after(patience));
  runtime::on_loop(loop, [&] {
    process->reset();
    return true;
  });
  if (!is_over)
    return runtime::deadline_exceeded("it has not ended within " +
                                      std::to_string(patience.count()) + " s");
  return *ran;
}

/// The collective itself, by the program that has one: an actor on every node.
Finding all_reduce(NodeSet& set, std::uint64_t bytes) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path() / "starling-rl";
  if (!fs::exists(program, error)) {
    return {"all-reduce", Finding::State::kNote,
            "not run: starling-rl, which has Gloo and uses NCCL, is not next to starling",
            "install it, or build with LibTorch (make deps)"};
  }
  runtime::ProcessSpec spec;
  spec.program = program.string();
  spec.argv = {spec.program,          "all-reduce", "--address",
               set.address().address, "--bytes",    std::to_string(bytes)};
  spec.env = {"STARLING_TOKEN=" + set.address().token};
  auto ran = run_program(set.loop(), spec, kAllReducePatience);
  if (!ran.ok())
    return {
        "all-reduce", Finding::State::kFailure, ran.status().message(),
        "see that " + spec.program + " may be executed, and that the connections above are whole"};
  std::string& output = ran->output;
  while (!output.empty() && output.back() == '\n') output.pop_back();
  const std::string last = output.substr(output.rfind('\n') + 1);
  const Json result = Json::parse(last, nullptr, false);
  if (ran->exit_code != 0 || !result.is_object()) {
    return {"all-reduce", Finding::State::kFailure, last,
            "the connections above say which pair is broken; Gloo and NCCL use their own ports "
            "between workers, which a firewall may close"};
  }
  char text[200];
  std::snprintf(text, sizeof text, "%s over %d nodes: %.0f MiB in %.1f ms, %.0f MB/s per node",
                result.value("backend", "?").c_str(), result.value("nodes", 0),
                static_cast<double>(bytes) / (1 << 20), result.value("seconds", 0.0) * 1e3,
                result.value("bus_bytes_per_s", 0.0) / 1e6);
  const std::string without_nccl = result.value("why_not_nccl", "");
  return {"all-reduce", Finding::State::kGood,
          text + (without_nccl.empty() ? "" : "; not by NCCL: " + without_nccl), ""};
}

void append(std::vector<Finding>& to, std::vector<Finding> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

runtime::Status look_at_cluster(const DoctorOptions& options, std::vector<Finding>& findings) {
  auto nodes = NodeSet::connect(options.address);
  if (!nodes.ok()) return nodes.status();
  for (const NodeSet::Entry& entry : (*nodes)->nodes()) {
    if (entry.client) continue;
    findings.push_back(
        {"node " + entry.info.node.short_hex(), Finding::State::kFailure,
         entry.info.address + " cannot be reached from here: " + entry.trouble.message(),
         "open that port to this machine, or run the doctor on a machine of the cluster"});
  }
  append(findings, judge_clocks(clock_offsets(**nodes)));
  if ((*nodes)->nodes().size() < 2) {
    findings.push_back({"connection", Finding::State::kNote,
                        "the cluster has one node: there is nothing between nodes to measure",
                        "starling start --address on another machine"});
    return {};
  }
  std::vector<Finding> pairs = judge_pairs(measure_pairs(**nodes, options.bytes));
  const bool broken = std::any_of(pairs.begin(), pairs.end(), [](const Finding& pair) {
    return pair.state == Finding::State::kFailure;
  });
  append(findings, std::move(pairs));
  if (broken)
    findings.push_back({"all-reduce", Finding::State::kNote,
                        "not run: it would hang at the broken connection", "repair that first"});
  else
    findings.push_back(all_reduce(**nodes, options.bytes));
  return {};
}

}  // namespace

int doctor_command(const DoctorOptions& options) {
  std::vector<Finding> findings = judge(machine_facts());
  if (options.cluster) {
    if (runtime::Status status = look_at_cluster(options, findings); !status.ok()) {
      findings.push_back({"cluster", Finding::State::kFailure, status.message(),
                          "start one with `starling start --head`, or name one with --address"});
    }
  }
  const bool failed = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.state == Finding::State::kFailure;
  });
  if (options.json) {
    Json list = Json::array();
    for (const Finding& finding : findings)
      list.push_back({{"check", finding.check},
                      {"state", to_string(finding.state)},
                      {"what", finding.what},
                      {"cure", finding.cure}});
    print_json(Json{{"ok", !failed}, {"findings", list}});
    return failed ? 1 : 0;
  }
  for (const Finding& finding : findings) {
    say("%-8s %s: %s\n", to_string(finding.state), finding.check.c_str(), finding.what.c_str());
    if (!finding.cure.empty()) say("         cure: %s\n", finding.cure.c_str());
  }
  return failed ? 1 : 0;
}

}  // namespace placement
