#include "placement/app/cli_timeline.h"

#include <cmath>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/core/clock.h"
#include "runtime/observe/activity_layout.h"
#include "tests/placement/app/fake_cluster.h"
#include "tests/support/in_child.h"

namespace placement {
namespace {

using namespace std::chrono_literals;

/// A cluster whose one node's clock is far behind that of the command. The node says what an
/// earlier recording has left when the new one begins, and then one part after the other.
struct RecordedCluster {
  RecordedCluster() {
    cluster.on_observe<runtime::control::ReadClock>([](const auto&) {
      return runtime::Numbers{{"steady_ns", static_cast<double>(node_clock())}};
    });
    cluster.on_observe<runtime::control::Trace>([this](const runtime::control::Trace& request) {
      EXPECT_TRUE(request.read);
      recorded.push_back(request.record);
      if (request.record > 0ms) return of_event(0);
      on_part();
      if (parts == 0) return runtime::TraceChunk();
      --parts;
      return of_event(lost);
    });
    options.address = cluster.address();
    options.output = folder.file("trace.json");
    options.seconds = 0.001;
  }
  static std::int64_t node_clock() {
    constexpr std::chrono::nanoseconds kBehind = 1000s;
    return (runtime::steady_now().time_since_epoch() - kBehind).count();
  }
  /// A call that a method has run, a second from now.
  static runtime::TraceChunk of_event(std::uint64_t lost_before) {
    runtime::activity::TraceEvent event;
    event.begin_ns =
        static_cast<std::uint64_t>(node_clock() + std::chrono::nanoseconds(1s).count());
    event.duration_ns = 2'000;
    event.method = 1;
    runtime::TraceOfProcess process;
    process.pid = 12;
    process.names = {"?", "Counter.add"};
    process.events.assign(reinterpret_cast<const char*>(&event), sizeof event);
    process.lost = lost_before;
    return {0, {process}};
  }

  FakeCluster cluster;
  const support::TemporaryFolder folder;
  TimelineOptions options;
  std::vector<std::chrono::milliseconds> recorded;  // of each request
  std::function<void()> on_part = [] {};            // before each is given
  int parts = 0;
  std::uint64_t lost = 0;  // before each
};

class TimelineCommand : public ::testing::Test, protected RecordedCluster {
 protected:
  ~TimelineCommand() override { std::signal(SIGINT, SIG_DFL); }
  Said timeline() {
    return said_by([&] { return timeline_command(options); });
  }
};

TEST_F(TimelineCommand, HasAllPartsOfThisRecordingInOneClock) {
  parts = 5;
  const Said said = timeline();
  EXPECT_EQ(said.code, 0) << said.err;
  expect_said(said.out, {options.output + ": 5 calls and 0 transfers of 1 nodes"});
  EXPECT_EQ(said.out.find("lost"), std::string::npos) << said.out;
  std::ifstream file(options.output);
  const auto trace = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(trace.is_object());
  int runs = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++runs;
    EXPECT_EQ(event["name"], "Counter.add");
    EXPECT_LT(std::abs(event["ts"].get<double>() * 1e-6 - 1), 100) << "of the node's clock";
  }
  EXPECT_EQ(runs, 5);
}

TEST_F(TimelineCommand, RecordsForThatTimeAndOnlyOnce) {
  options.seconds = 0.05;
  EXPECT_EQ(timeline().code, 0);
  ASSERT_GE(recorded.size(), 3u);
  EXPECT_EQ(recorded[0], 50ms);
  for (std::size_t i = 1; i < recorded.size(); ++i) EXPECT_EQ(recorded[i], 0ms);
}

TEST_F(TimelineCommand, SaysWhatWasLostAndWhoIsSilent) {
  parts = 2;
  lost = 7;
  const std::string gone = cluster.add_node().node.short_hex();
  const Said said = timeline();
  EXPECT_EQ(said.code, 1);
  expect_said(said.out, {"2 calls and", "of 2 nodes", "14 events were lost"});
  expect_said(said.err, {"node " + gone});
}

TEST_F(TimelineCommand, AMistakeIsNamed) {
  for (const double seconds : {0.0, -1.0, 601.0, std::nan("")}) {
    options.seconds = seconds;
    const Said said = timeline();
    EXPECT_EQ(said.code, 1) << seconds;
    expect_said(said.err, {"--seconds"});
  }
  options.seconds = 0.001;
  options.output = folder.file("missing/trace.json");
  const Said said = timeline();
  EXPECT_EQ(said.code, 1);
  expect_said(said.err, {"-o " + options.output});
  EXPECT_TRUE(recorded.empty());
}

TEST(InterruptedTimeline, HasWhatCameBeforeTheInterrupt) {
  const int code = support::in_child([] {
    RecordedCluster recording;
    recording.options.seconds = 600;
    recording.parts = 1;
    recording.on_part = [] { ::raise(SIGINT); };
    const Said said = said_by([&] { return timeline_command(recording.options); });
    return said.out.find(": 1 calls and") == std::string::npos ? 1 : said.code;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace placement
