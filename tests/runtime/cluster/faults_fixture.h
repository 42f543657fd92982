// A cluster under all faults at random, and what has to be true afterwards.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>

#include "fixture.h"
#include "schedule.h"

namespace runtime::test {

class FaultsTest : public NetworkTest {
 protected:
  /// The number that a variable of the environment says, to try another seed or another time.
  static std::uint64_t setting(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
  }

  void run_faults(std::uint64_t seed, int machines, std::chrono::seconds duration) {
    const std::vector<int> delaying{machines - 1};
    make_network(machines, delaying);
    if (IsSkipped()) return;
    const std::filesystem::path disk = folder_.path() / "disk";
    std::filesystem::create_directories(disk);
    const bool has_disk = ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64m,mode=0700") == 0;
    const std::string clock = folder_.file("clock"),
                      library =
                          std::filesystem::path(own_program()).parent_path() / "wall_clock.so";
    const auto set_clock = [clock](std::int64_t seconds) {
      FileDescriptor file(::open(clock.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      if (::pwrite(file.get(), &seconds, sizeof seconds, 0) != static_cast<ssize_t>(sizeof seconds))
        ::abort();
    };
    set_clock(0);
    ClusterOptions options{.machines = machines,
                           .durable = false,
                           .arguments = {"--num-cpus", "4"},
                           .head_arguments = {"--journal", (disk / "journal").string()}};
    options.environment = [clock, library](int) {
      return std::vector<std::string>{"LD_PRELOAD=" + library, "WALL_CLOCK_FILE=" + clock,
                                      "ASAN_OPTIONS=verify_asan_link_order=0"};
    };
    cluster_ = std::make_unique<Cluster>(*network_, folder_.path(), std::move(options));
    const Status started = cluster_->start();
    ASSERT_TRUE(started.ok()) << started.to_string();
    ScheduleOptions faults{.seed = seed,
                           .duration = duration,
                           .clients_on = {1, machines - 2},
                           .delaying = delaying,
                           .set_wall_clock = set_clock};
    faults.load = {.tallies = 4, .per_second = 10};
    if (has_disk) faults.journal_disk = disk;
    Schedule schedule(*cluster_, *network_, history_file(), faults);
    const Status status = schedule.run();
    EXPECT_TRUE(status.ok()) << status.to_string();
    if (!HasFailure()) expect_promises_kept(1);
    const History asked = history();
    std::printf("seed %llu: %d faults, %d clients, %zu operations, %zu starts of actors\n",
                static_cast<unsigned long long>(seed), schedule.faults(), schedule.clients(),
                asked.events.size(), asked.lives.size());
    EXPECT_GT(asked.events.size(), static_cast<std::size_t>(duration.count()))
        << "the load has hardly run";
    if (!HasFailure()) return end_disk(disk);
    std::fprintf(
        stderr, "the same again: FAULTS_SEED=%llu FAULTS_SECONDS=%lld %s --gtest_filter=%s.%s\n%s",
        static_cast<unsigned long long>(seed), static_cast<long long>(duration.count()),
        own_program().c_str(),
        ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name(), schedule.trace().c_str());
    if (const char* kept = std::getenv("FAULTS_HISTORY"))
      std::filesystem::copy_file(history_file(), kept,
                                 std::filesystem::copy_options::overwrite_existing);
    std::fprintf(stderr, "the last that was asked:\n%s", asked.excerpt(INT64_MAX - 1, 60).c_str());
    end_disk(disk);
  }

 private:
  void end_disk(const std::filesystem::path& disk) {
    cluster_->stop();
    ::umount2(disk.c_str(), MNT_DETACH);
  }
};

}  // namespace runtime::test
