#include "placement/app/cli_timeline.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <memory>
#include <thread>

#include "placement/app/chrome_trace.h"
#include "placement/app/cli_nodes.h"

namespace placement {

namespace {

constexpr int kClockQuestions = 8;
constexpr int kLastReads = 64;
constexpr std::chrono::milliseconds kReadEvery{100};  // a process keeps its last 32,768 events only

volatile std::sig_atomic_t timeline_interrupted = 0;
void interrupt_timeline(int) { timeline_interrupted = 1; }

std::int64_t own_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             runtime::steady_now().time_since_epoch())
      .count();
}

/// How far the node's steady clock is behind ours: of several questions the one with the fastest
/// answer says it best.
std::int64_t clock_behind(runtime::EventLoop& loop, runtime::NodeClient& node,
                          std::int64_t* error_ns) {
  std::int64_t behind = 0, fastest = INT64_MAX;
  for (int i = 0; i < kClockQuestions; ++i) {
    const std::int64_t asked = own_clock();
    auto answer = observe<runtime::Numbers>(loop, node, runtime::control::ReadClock{},
                                            std::chrono::seconds(2));
    const std::int64_t took = own_clock() - asked;
    if (!answer.ok() || took >= fastest) continue;
    fastest = took;
    behind = asked + took / 2 - static_cast<std::int64_t>((*answer)["steady_ns"]);
  }
  *error_ns = std::max(*error_ns, fastest == INT64_MAX ? 0 : fastest / 2);
  return behind;
}

}  // namespace

int timeline_command(const TimelineOptions& options) {
  if (!(options.seconds > 0 && options.seconds <= 600))
    return fail(runtime::invalid_argument("--seconds: expected more than 0 and at most 600"));
  auto nodes = NodeSet::connect(options.address);
  if (!nodes.ok()) return fail(nodes.status());
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(options.output.c_str(), "we"),
                                                       &std::fclose);
  if (!file) return fail(runtime::errno_status(errno, "-o " + options.output));
  std::map<runtime::NodeId, std::int64_t> behind;
  std::int64_t error_ns = 0;
  for (NodeSet::Entry& entry : (*nodes)->nodes()) {
    if (entry.client)
      behind[entry.info.node] = clock_behind((*nodes)->loop(), *entry.client, &error_ns);
  }
  ChromeTrace trace(file.get());
  const auto length =
      std::chrono::milliseconds(std::max(1l, static_cast<long>(options.seconds * 1000)));
  const auto from = static_cast<std::uint64_t>(own_clock());
  const auto read = [&](std::chrono::milliseconds record, bool keep) {
    bool any = false;
    (*nodes)->ask_all<runtime::TraceChunk>(
        runtime::control::Trace{record, true},
        [&](const runtime::NodeInfo& info, const runtime::TraceChunk& chunk) {
          any = any || !chunk.processes.empty();
          for (const runtime::TraceOfProcess& process : chunk.processes) {
            if (keep) trace.add(info.node.short_hex(), behind[info.node], from, process);
          }
        });
    return any;
  };
  ::signal(SIGINT,
           interrupt_timeline);  // a Ctrl-C ends the recording, and what there is is written
  read(length, false);           // what an earlier recording left is not ours
  const runtime::Deadline until = runtime::deadline_after(length);
  while (timeline_interrupted == 0 && runtime::steady_now() < until) {
    std::this_thread::sleep_for(std::min<runtime::Deadline::duration>(
        kReadEvery, std::max<runtime::Deadline::duration>(until - runtime::steady_now(),
                                                          std::chrono::milliseconds(1))));
    read({}, true);
  }
  for (int i = 0; i < kLastReads && read({}, true);
       ++i) {  // a node answers with a part at a time, and keeps the rest
  }
  if (runtime::Status status = trace.end(); !status.ok())
    return fail(status.with_context(options.output));
  std::printf(
      "%s: %llu calls and %llu transfers of %zu nodes in %.1f s, clocks within %.0f µs; open it at "
      "ui.perfetto.dev\n",
      options.output.c_str(), static_cast<unsigned long long>(trace.calls()),
      static_cast<unsigned long long>(trace.transfers()), (*nodes)->nodes().size(), options.seconds,
      static_cast<double>(error_ns) * 1e-3);
  if (trace.lost() > 0) {
    std::printf(
        "%llu events were lost: a process keeps its last 32,768, and there were more within %lld "
        "ms\n",
        static_cast<unsigned long long>(trace.lost()), static_cast<long long>(kReadEvery.count()));
  }
  return (*nodes)->report_silent() ? 1 : 0;
}

}  // namespace placement
