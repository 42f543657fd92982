#include "runtime/core/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>

namespace runtime {
namespace {

/// Runs `body` in a child of another user that may have no second process or thread; what it
/// returns.
std::string without_threads(const std::function<std::string()>& body) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit none{1, 1};
    ::setrlimit(RLIMIT_NPROC, &none);
    if (::geteuid() == 0 && ::setuid(54321) != 0) ::_exit(1);
    const std::string said = body();
    ::_exit(::write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0
                                                                                            : 1);
  }
  ::close(ends[1]);
  char said[4096];
  const ssize_t count = ::read(ends[0], said, sizeof said);
  ::close(ends[0]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return std::string(said, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
}

TEST(Thread, Runs) {
  std::atomic<bool> ran{false};
  auto thread = Thread::start([&] { ran = true; });
  ASSERT_TRUE(thread.ok()) << thread.status().message();
  EXPECT_TRUE(thread->joinable());
  thread->join();
  EXPECT_TRUE(ran);
}

TEST(Thread, WhereThereIsNoRoomItNamesTheLimits) {
  const std::string said = without_threads([] {
    auto thread = Thread::start([] {});
    if (!thread.ok()) return thread.status().to_string();
    thread->join();
    return std::string("it was made");
  });
  for (const char* part :
       {"resource exhausted", "no thread can be made", "ulimit -u: 1 per user", "pids.max"})
    EXPECT_NE(said.find(part), std::string::npos) << part << " in: " << said;
}

TEST(HelperThreads, RunAsManyAsAreAskedFor) {
  std::atomic<int> ran{0};
  {
    const HelperThreads helpers(3, [&] { ++ran; });
    EXPECT_EQ(helpers.size(), 3u);
  }
  EXPECT_EQ(ran, 3);
}

TEST(HelperThreads, AreNoneWhereThereIsNoRoom) {
  EXPECT_EQ(without_threads([] { return std::to_string(HelperThreads(3, [] {}).size()); }), "0");
}

}  // namespace
}  // namespace runtime
