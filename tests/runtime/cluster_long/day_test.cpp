// A day of a cluster's life in twenty minutes: as many calls, jobs and deaths of the head as
// a busy day has. What the processes and their folder take stays what it was.
#include <filesystem>
#include <map>

#include "tests/runtime/cluster/fixture.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

namespace fs = std::filesystem;

/// What one process takes.
struct Footprint {
  long resident_kib = 0;
  long descriptors = 0;
  long threads = 0;
};

long entries_of(const fs::path& folder) {
  std::error_code gone;
  const fs::directory_iterator all(folder, gone);
  return gone ? 0 : std::distance(begin(all), end(all));
}

class DayTest : public NetworkTest {
 protected:
  static constexpr int kMachines = 3;
  static constexpr int kJobsADay = 1440;  // one a minute
  static constexpr int kHeadDeaths = 48;

  static std::chrono::seconds duration() {
    const char* given = std::getenv("DAY_SECONDS");
    return std::chrono::seconds(given ? std::atoi(given) : 1200);
  }

  std::map<std::string, Footprint> footprints() const {
    std::map<std::string, Footprint> all;
    const auto add = [&all](const std::string& name, pid_t pid) {
      const fs::path process = "/proc/" + std::to_string(pid);
      all[name] = {resident_kib(pid), entries_of(process / "fd"), entries_of(process / "task")};
    };
    for (int machine = 0; machine < kMachines; ++machine)
      add("node " + std::to_string(machine), cluster_->node(machine));
    add("head", cluster_->head());
    return all;
  }
  std::uintmax_t journal_bytes() const {
    std::uintmax_t bytes = 0;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(cluster_->journal(), gone)) {
      if (entry.is_regular_file(gone)) bytes += entry.file_size(gone);
    }
    return bytes;
  }
  /// In the sessions' folders.
  long files() const {
    long count = 0;
    std::error_code gone;
    for (int machine = 0; machine < kMachines; ++machine) {
      const fs::path sessions = folder_.path() / ("s" + std::to_string(machine));
      for (auto entry = fs::recursive_directory_iterator(sessions, gone);
           !gone && entry != fs::recursive_directory_iterator(); entry.increment(gone))
        ++count;
    }
    return count;
  }

  /// A share of a day's jobs and head deaths, spread over a time, one job after another.
  void live(std::chrono::duration<double> time, double share) {
    const auto begun = std::chrono::steady_clock::now();
    const auto passed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun) / time;
    };
    const int jobs = static_cast<int>(kJobsADay * share);
    const int deaths = static_cast<int>(kHeadDeaths * share);
    int ran = 0, died = 0;
    while (passed() < 1 || ran < jobs) {
      if (died < deaths && passed() * deaths >= died) {
        if (const pid_t head = cluster_->head(); head > 0) ::kill(head, SIGKILL);
        ++died;
      }
      if (ran < jobs && passed() * jobs >= ran) {
        const Finished job =
            cluster_->starling(ran % kMachines, {"submit", "--", "sh", "-c", "echo done"});
        EXPECT_EQ(job.code, 0) << job.output;
        ++ran;
      } else {
        support::pace(20ms);
      }
    }
    jobs_ += ran;
    deaths_ += died;
  }

  int jobs_ = 0, deaths_ = 0;
};

TEST_F(DayTest, TakesNoMoreAtItsEndThanAtItsBeginning) {
  start_here({.machines = kMachines, .arguments = {"--num-cpus", "4"}});
  if (HasFatalFailure()) return;
  // Calls between actors and drivers, objects, keys: nothing of it grows by itself.
  for (int machine = 0; machine < kMachines; ++machine)
    begin_load(machine, {.tallies = 1, .per_second = 400, .kinds = "ecs"});
  const std::chrono::duration<double> day = duration();
  live(day / 4,
       0.25);  // what is filled once and then kept: caches, pools, tables of what has ended
  ASSERT_TRUE(eventually([&] { return cluster_->members(1) == kMachines; }, 20s));
  const auto before = footprints();
  const std::uintmax_t journal_before = journal_bytes();
  const long files_before = files();
  live(day * 3 / 4, 0.75);
  ASSERT_TRUE(eventually([&] { return cluster_->members(1) == kMachines; }, 20s));
  const auto after = footprints();
  for (const auto& [name, first] : before) {
    const Footprint& last = after.at(name);
    std::printf("%s: %ld KiB, then %ld; %ld descriptors, then %ld; %ld threads, then %ld\n",
                name.c_str(), first.resident_kib, last.resident_kib, first.descriptors,
                last.descriptors, first.threads, last.threads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what is freed
    EXPECT_LE(last.resident_kib, first.resident_kib + first.resident_kib / 4 + (8 << 10)) << name;
#endif
    EXPECT_LE(last.descriptors, first.descriptors + 16) << name;
    EXPECT_LE(last.threads, first.threads + 4) << name;
  }
  std::printf("%d jobs, %d deaths of the head; journal %ju bytes, then %ju; files %ld, then %ld\n",
              jobs_, deaths_, journal_before, journal_bytes(), files_before, files());
  EXPECT_LE(journal_bytes(), 2 * journal_before + (4 << 20));
  EXPECT_LE(files(), 1100L * kMachines) << "logs are bounded by number";
  end_loads();
  expect_promises_kept(0);
}

}  // namespace
}  // namespace runtime::test
