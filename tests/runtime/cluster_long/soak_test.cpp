// A quarter of an hour of all faults at random, and ten minutes of a machine that is busy with
// other things.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>

#include "tests/runtime/cluster/faults_fixture.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

TEST_F(FaultsTest, AQuarterOfAnHour) {
  run_faults(setting("FAULTS_SEED", static_cast<std::uint64_t>(now_us())), 6,
             std::chrono::seconds(setting("FAULTS_SECONDS", 900)));
}

/// Processes that take every cycle they get, two for each core, as long as this lives.
class Burners {
 public:
  Burners() {
    cpu_set_t cores;
    ::sched_getaffinity(0, sizeof cores, &cores);
    for (int i = 0; i < 2 * CPU_COUNT(&cores); ++i) {
      const pid_t pid = ::fork();
      if (pid != 0) {
        pids_.push_back(pid);
        continue;
      }
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (std::atomic<std::uint64_t> count{0};;) ++count;
    }
  }
  ~Burners() {
    for (pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> pids_;
};

TEST_F(FaultsTest, ABusyMachineIsNotADeadOne) {
  start({.machines = 4, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  const auto duration = std::chrono::seconds(setting("FAULTS_SECONDS", 600));
  Burners burners;
  begin_load(1, {.tallies = 4, .per_second = 20});
  begin_load(2, {.tallies = 4, .per_second = 20});
  ASSERT_TRUE(eventually([&] { return history().lives.size() == 4; }, 60s));
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    const int members = cluster_->members(3);
    EXPECT_TRUE(members == 4 || members == -1)
        << members
        << " members: a busy node was taken for dead";  // -1: the question itself was late
    support::pace(2s);
  }
  EXPECT_EQ(cluster_->members(3), 4);
  end_loads();
  EXPECT_EQ(history().lives.size(), 4u)
      << "an actor was started again though nothing had happened to it";
  expect_promises_kept(3);
}

}  // namespace
}  // namespace runtime::test
