#include "rl/profile/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

namespace rl::profile {
namespace {

const char* category(SpanKind kind) {
  switch (kind) {
    case SpanKind::kStep: return "step";
    case SpanKind::kLap: return "lap";
    case SpanKind::kCall: return "call";
    case SpanKind::kOperation: return "operation";
    case SpanKind::kKernel: return "kernel";
  }
  return "";
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Nanoseconds as microseconds with three digits behind the point.
void append_microseconds(std::string& out, std::int64_t ns) {
  if (ns < 0) out += '-', ns = -ns;
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), ns / 1000).ptr;
  out.append(digits.data(), end);
  const auto rest = static_cast<int>(ns % 1000);
  out += '.';
  out += static_cast<char>('0' + rest / 100);
  out += static_cast<char>('0' + rest / 10 % 10);
  out += static_cast<char>('0' + rest % 10);
}

// Spans thread by thread in the order in which they began, the outer ones first.
std::vector<std::size_t> nested_order(const Recording& recording) {
  std::vector<std::size_t> order(recording.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(recording.thread[a], recording.begin_ns[a], -recording.end_ns[a],
                      recording.kind[a]) < std::tuple(recording.thread[b], recording.begin_ns[b],
                                                      -recording.end_ns[b], recording.kind[b]);
  });
  return order;
}

// The outermost kind that a thread has says what it is for.
std::string thread_title(SpanKind outermost, const RecordedThread& thread) {
  switch (outermost) {
    case SpanKind::kStep:
    case SpanKind::kLap: return "steps";
    case SpanKind::kCall: return "calls";
    default: return thread.name.empty() ? "thread" : thread.name;
  }
}

std::vector<SpanKind> outermost_kinds(const Recording& recording) {
  std::vector<SpanKind> kinds(recording.threads.size(), SpanKind::kKernel);
  for (std::size_t i = 0; i < recording.size(); ++i)
    kinds[recording.thread[i]] = std::min(kinds[recording.thread[i]], recording.kind[i]);
  return kinds;
}

void append_process(std::string& out, std::size_t pid, const ProfiledProcess& process,
                    std::int64_t from_ns) {
  const Recording& recording = process.recording;
  const std::string in_process = ",\"pid\":" + std::to_string(pid);
  out += "{\"ph\":\"M\",\"name\":\"process_name\"" + in_process +
         ",\"tid\":0,\"args\":{\"name\":" + quoted(process.name) + "}},\n";
  out += "{\"ph\":\"M\",\"name\":\"process_sort_index\"" + in_process +
         ",\"tid\":0,\"args\":{\"sort_index\":" + std::to_string(pid) + "}},\n";
  const std::vector<SpanKind> kinds = outermost_kinds(recording);
  for (std::size_t t = 0; t < recording.threads.size(); ++t) {
    const std::string in_thread =
        in_process + ",\"tid\":" + std::to_string(recording.threads[t].id);
    out += "{\"ph\":\"M\",\"name\":\"thread_name\"" + in_thread +
           ",\"args\":{\"name\":" + quoted(thread_title(kinds[t], recording.threads[t])) + "}},\n";
    out += "{\"ph\":\"M\",\"name\":\"thread_sort_index\"" + in_thread +
           ",\"args\":{\"sort_index\":" + std::to_string(static_cast<int>(kinds[t])) + "}},\n";
  }
  std::vector<std::string> names;
  for (const std::string& name : recording.names) names.push_back(quoted(name));
  for (const std::size_t i : nested_order(recording)) {
    out += "{\"ph\":\"X\",\"name\":" + names[recording.name[i]] + ",\"cat\":\"" +
           category(recording.kind[i]) + "\"" + in_process +
           ",\"tid\":" + std::to_string(recording.threads[recording.thread[i]].id) + ",\"ts\":";
    append_microseconds(out, recording.begin_ns[i] - process.ahead_ns - from_ns);
    out += ",\"dur\":";
    append_microseconds(out, recording.end_ns[i] - recording.begin_ns[i]);
    out += "},\n";
  }
}

struct Lap {
  std::int64_t begin_ns, end_ns;
  std::string name;
};

std::vector<Lap> laps_of(std::span<const ProfiledProcess> processes) {
  std::vector<Lap> laps;
  for (const ProfiledProcess& process : processes) {
    const Recording& recording = process.recording;
    for (std::size_t i = 0; i < recording.size(); ++i) {
      if (recording.kind[i] != SpanKind::kLap) continue;
      laps.push_back({recording.begin_ns[i] - process.ahead_ns,
                      recording.end_ns[i] - process.ahead_ns, recording.names[recording.name[i]]});
    }
  }
  std::sort(laps.begin(), laps.end(),
            [](const Lap& a, const Lap& b) { return a.begin_ns < b.begin_ns; });
  return laps;
}

using Seconds = std::map<std::string, double>;

// What the threads that take calls did themselves, by the lap that it fell into.
void add_operations(const ProfiledProcess& process, const std::vector<Lap>& laps,
                    std::map<std::string, Seconds>& by_lap) {
  const Recording& recording = process.recording;
  const std::vector<SpanKind> kinds = outermost_kinds(recording);
  const std::vector<std::size_t> order = nested_order(recording);
  std::vector<std::int64_t> inside(
      recording.size(),
      0);  // of each span: how long the spans right inside it took, kernels in operations aside
  std::vector<std::size_t> open;
  const auto is_within = [&](std::size_t inner, std::size_t outer) {
    return recording.thread[inner] == recording.thread[outer] &&
           recording.end_ns[inner] <= recording.end_ns[outer];
  };
  std::vector<bool> counts(recording.size(), true);
  for (const std::size_t i : order) {
    while (!open.empty() && !is_within(i, open.back())) open.pop_back();
    if (!open.empty()) {
      const bool parent_counts_it = recording.kind[i] == SpanKind::kKernel &&
                                    recording.kind[open.back()] >= SpanKind::kOperation;
      counts[i] = !parent_counts_it;
      if (!parent_counts_it) inside[open.back()] += recording.end_ns[i] - recording.begin_ns[i];
    }
    if (counts[i]) open.push_back(i);
  }
  for (std::size_t i = 0; i < recording.size(); ++i) {
    if (!counts[i] || kinds[recording.thread[i]] != SpanKind::kCall) continue;
    const std::int64_t middle = recording.begin_ns[i] +
                                (recording.end_ns[i] - recording.begin_ns[i]) / 2 -
                                process.ahead_ns;
    const auto lap =
        std::upper_bound(laps.begin(), laps.end(), middle,
                         [](std::int64_t at, const Lap& l) { return at < l.begin_ns; });
    if (lap == laps.begin() || std::prev(lap)->end_ns < middle) continue;
    const std::string& name = recording.names[recording.name[i]];
    const double own =
        static_cast<double>(recording.end_ns[i] - recording.begin_ns[i] - inside[i]) * 1e-9;
    by_lap[std::prev(lap)->name][recording.kind[i] == SpanKind::kCall ? name + " itself" : name] +=
        own;
  }
}

}  // namespace

std::string chrome_trace(std::span<const ProfiledProcess> processes, std::int64_t from_ns) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  nlohmann::ordered_json cut = nlohmann::ordered_json::object();
  for (std::size_t pid = 0; pid < processes.size(); ++pid) {
    append_process(out, pid, processes[pid], from_ns);
    if (processes[pid].recording.cut > 0) cut[processes[pid].name] = processes[pid].recording.cut;
  }
  if (out.ends_with(",\n")) out.resize(out.size() - 2);
  out += "\n],\"otherData\":{\"spans_cut\":" + cut.dump() + "}}\n";
  return out;
}

std::vector<LapUse> time_use(std::span<const ProfiledProcess> processes) {
  const std::vector<Lap> laps = laps_of(processes);
  std::map<std::string, Seconds> by_lap;
  for (const ProfiledProcess& process : processes) add_operations(process, laps, by_lap);
  std::map<std::string, double> seconds;
  double total = 0.0;
  for (const Lap& lap : laps) {
    const double took = static_cast<double>(lap.end_ns - lap.begin_ns) * 1e-9;
    seconds[lap.name] += took;
    total += took;
  }
  std::vector<LapUse> uses;
  for (const auto& [name, took] : seconds) {
    LapUse use{
        .name = name, .seconds = took, .share = total > 0 ? took / total : 0.0, .operations = {}};
    use.operations.assign(by_lap[name].begin(), by_lap[name].end());
    std::stable_sort(use.operations.begin(), use.operations.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    uses.push_back(std::move(use));
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const LapUse& a, const LapUse& b) { return a.seconds > b.seconds; });
  return uses;
}

}  // namespace rl::profile
