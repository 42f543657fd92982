// Clocks that differ between machines, and clocks that jump: no decision of the cluster's is of a
// kind that notices.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/runtime/cluster/fixture.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

class ClocksTest : public NetworkTest {};

TEST_F(ClocksTest, MachinesHaveMonotonicClocksOfTheirOwn) {
  const auto ahead = [](int machine) {
    return std::chrono::seconds(machine == 2 ? 3600 : machine == 3 ? 40 * 86400 : 0);
  };
  start({.machines = 4, .arguments = {"--num-cpus", "4"}, .clock_ahead = ahead});
  if (IsSkipped()) return;
  const double here = std::stod(cluster_->run(0, {"cat", "/proc/uptime"}).output),
               there = std::stod(cluster_->run(2, {"cat", "/proc/uptime"}).output);
  if (there - here < 3000) GTEST_SKIP() << "no time namespaces here";
  begin_load(0, {.tallies = 4, .per_second = 10});
  begin_load(1, {.tallies = 4, .per_second = 10});
  support::hold_for(4s);  // of load without a fault
  ::kill(cluster_->head(), SIGKILL);
  support::hold_for(1s);  // of load without a head, and with the next one
  cluster_->kill_node(2);
  support::hold_for(1s);  // of load without that node
  expect_started(2);
  support::hold_for(2s);  // of load with all again
  EXPECT_EQ(cluster_->members(3), 4);
  end_loads();
  int failed = 0;
  const History asked = history();
  for (const Event& event : asked.events)
    failed += event.code == ErrorCode::kDeadlineExceeded ? 1 : 0;
  EXPECT_EQ(failed, 0) << asked.excerpt(INT64_MAX - 1, 40);
  expect_promises_kept(0);
}

TEST_F(ClocksTest, TheWallClockJumpsUnnoticed) {
  const std::string file = folder_.file("clock"),
                    library = std::filesystem::path(own_program()).parent_path() / "wall_clock.so";
  const auto set_clock = [&](std::int64_t seconds) {
    FileDescriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::pwrite(opened.get(), &seconds, sizeof seconds, 0),
              static_cast<ssize_t>(sizeof seconds));
  };
  set_clock(0);
  const auto environment = [library, file](int) {
    return std::vector<std::string>{"LD_PRELOAD=" + library, "WALL_CLOCK_FILE=" + file,
                                    "ASAN_OPTIONS=verify_asan_link_order=0"};
  };
  start({.machines = 3, .arguments = {"--num-cpus", "4"}, .environment = environment});
  if (IsSkipped()) return;
  set_clock(40LL * 365 * 86400);
  const Finished date = cluster_->run(0, {"date", "+%Y"});
  ASSERT_GT(std::atoi(date.output.c_str()), 2050) << "the clock does not jump: " << date.output;
  begin_load(1, {.tallies = 2, .per_second = 20});
  begin_load(2, {.tallies = 2, .per_second = 20});
  for (std::int64_t seconds : {0LL, 86400LL, -10LL * 365 * 86400, 3600LL, -3600LL, 0LL}) {
    set_clock(seconds);
    support::hold_for(1s);  // of load with that time
  }
  EXPECT_EQ(cluster_->members(1), 3);
  end_loads();
  const History asked = history();
  EXPECT_GT(asked.events.size(), 500u);
  std::int64_t slowest = 0;
  for (const Event& event : asked.events) {
    EXPECT_TRUE(event.ok() || event.op == Op::kName) << event.to_string();
    if (event.end != 0) slowest = std::max(slowest, event.end - event.begin - event.stalled);
  }
  std::printf("slowest answer: %lld ms\n", static_cast<long long>(slowest / 1000));
  EXPECT_LT(slowest, 3'000'000);
  expect_promises_kept(0);
}

}  // namespace
}  // namespace runtime::test
