// A node's counts and records of its processes, while they come and go.
#include "runtime/observe/activity_table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "runtime/observe/activity_page.h"

namespace runtime {
namespace {

/// Processes with a page each.
class ActivityTableTest : public ::testing::Test {
 protected:
  ActivityPage& begin(std::uint64_t connection) {
    auto page = ActivityPage::create();
    EXPECT_TRUE(page.ok()) << page.status().to_string();
    pages_[connection] = *page;
    const Status status = table_.adopt(
        {connection, static_cast<std::int32_t>(connection), "worker"}, *(*page)->duplicate());
    EXPECT_TRUE(status.ok()) << status.to_string();
    return **page;
  }
  static void call(ActivityPage& page, const std::string& class_name, int times) {
    const auto ref = page.class_of(class_name, std::vector<std::string>());
    for (int i = 0; i < times; ++i) {
      page.begin_call({}, ref.constructor, 1);
      page.end_call(ref, 1, 2, false);
    }
  }
  static void record(ActivityPage& page, std::size_t events) {
    activity::TraceEvent event;
    for (std::size_t i = 0; i < events; ++i) page.record(event);
  }
  std::map<std::string, std::uint64_t> counters() {
    std::map<std::string, std::uint64_t> calls;
    for (const ClassLoad& load : table_.classes()) calls[load.name] = load.calls;
    return calls;
  }

  ActivityTable table_;
  std::map<std::uint64_t, std::shared_ptr<ActivityPage>> pages_;
};

TEST_F(ActivityTableTest, NoCounterGoesBackWhenProcessesEnd) {
  // Twice as many classes as are told apart, one a process; those end first that came last, or in
  // the middle.
  constexpr int kProcesses = 2 * static_cast<int>(ActivityTable::kClassesMax);
  std::map<std::string, std::uint64_t> before;
  std::uint64_t total = 0;
  const auto expect_no_less = [&](const std::string& when) {
    const auto now = counters();
    std::uint64_t sum = 0;
    for (const auto& [name, calls] : now) sum += calls;
    EXPECT_EQ(sum, total) << when;
    EXPECT_LE(now.size(), ActivityTable::kClassesMax + 1) << when;
    for (const auto& [name, calls] : before) {
      ASSERT_TRUE(now.contains(name)) << name << " is gone " << when;
      EXPECT_GE(now.at(name), calls) << name << " has gone back " << when;
    }
    before = now;
  };
  for (int i = 1; i <= kProcesses; ++i) {
    call(begin(static_cast<std::uint64_t>(i)), "Class" + std::to_string(1000 - i), i);
    total += static_cast<std::uint64_t>(i);
    if (i % 7 == 0) expect_no_less("after the start of " + std::to_string(i));
  }
  for (int step = 0; step < kProcesses; ++step) {
    const int ends = (step * 37 + kProcesses - 1) % kProcesses + 1;  // each once
    table_.retire(static_cast<std::uint64_t>(ends));
    expect_no_less("after the end of " + std::to_string(ends));
  }
  EXPECT_TRUE(before.contains("other"));
}

TEST_F(ActivityTableTest, ASecondPageOfAConnectionKeepsWhatTheFirstCounted) {
  call(begin(1), "Counter", 5);
  call(begin(1), "Counter", 2);
  EXPECT_EQ(counters()["Counter"], 7u);
}

TEST_F(ActivityTableTest, RecordsAreToldWithinBounds) {
  constexpr std::size_t kEvent = sizeof(activity::TraceEvent), kAll = activity::kEventsMax;
  constexpr std::size_t kRing = kAll * kEvent;
  table_.record_until(activity_now() + 60'000'000'000);
  for (std::uint64_t connection = 1; connection <= 40; ++connection)
    record(begin(connection), kAll);
  for (std::uint64_t connection = 1; connection <= 20; ++connection) table_.retire(connection);
  std::size_t events = 0, lost = 0;
  std::map<std::int32_t, std::size_t> of_process;
  int chunks = 0;
  for (bool more = true; more; ++chunks) {
    const auto traces = table_.take_traces();
    std::size_t bytes = 0;
    for (const TraceOfProcess& trace : traces) {
      bytes += trace.events.size();
      events += trace.events.size() / kEvent;
      lost += trace.lost;
      of_process[trace.pid] += trace.events.size() / kEvent + trace.lost;
    }
    EXPECT_LE(bytes, ActivityTable::kTraceBytesMax + kRing);
    more = !traces.empty();
  }
  EXPECT_GT(chunks, 2);
  EXPECT_EQ(events + lost, 40 * kAll) << "nothing vanishes without a word";
  EXPECT_EQ(of_process.size(), 40u);
  for (std::int32_t living = 21; living <= 40; ++living)
    EXPECT_EQ(of_process[living], kAll) << living;
  EXPECT_GE(events, 20 * kAll + (16u << 20) / kEvent - kAll);
  EXPECT_LE(events, 20 * kAll + (16u << 20) / kEvent) << "what has ended is kept within bounds";

  // With room for one only, it is another one each time.
  of_process.clear();
  for (std::uint64_t connection = 21; connection <= 40; ++connection)
    record(*pages_[connection], 3);
  for (int i = 0; i < 20; ++i) {
    record(*pages_[21], 3);
    for (const TraceOfProcess& trace : table_.take_traces(1)) of_process[trace.pid] += 1;
  }
  EXPECT_EQ(of_process.size(), 20u);
}

}  // namespace
}  // namespace runtime
