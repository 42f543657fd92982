#include "runtime/core/fork_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/in_child.h"

namespace runtime {
namespace {

/// Whether the descriptor is /dev/null.
bool is_null(int descriptor) {
  struct stat info {};
  struct stat null {};
  return ::fstat(descriptor, &info) == 0 && ::stat("/dev/null", &null) == 0 &&
         info.st_rdev == null.st_rdev && S_ISCHR(info.st_mode);
}

TEST(ForkGuard, AChildIsOfAnotherGeneration) {
  watch_forks();
  const std::uint64_t here = fork_generation();
  EXPECT_EQ(support::in_child([&] { return fork_generation() == here ? 1 : 0; }), 0);
  EXPECT_EQ(support::in_child([&] {
              const std::uint64_t child = fork_generation();
              return support::in_child([&] { return fork_generation() == child ? 1 : 0; });
            }),
            0);
  EXPECT_EQ(fork_generation(), here);
}

TEST(ForkGuard, AChildHasNoneOfTheConnections) {
  watch_forks();
  int connection[2], kept[2];
  ASSERT_EQ(::pipe(connection), 0);
  ASSERT_EQ(::pipe(kept), 0);
  for (int end : connection) close_in_child(end);
  for (int end : kept) {
    close_in_child(end);
    keep_in_child(end);
  }
  EXPECT_EQ(support::in_child([&] {
              if (!is_null(connection[0]) || !is_null(connection[1])) return 1;
              return is_null(kept[0]) || is_null(kept[1]) ? 2 : 0;
            }),
            0);
  EXPECT_FALSE(is_null(connection[0]));
  for (int end : connection) keep_in_child(end);
  EXPECT_EQ(support::in_child([&] { return is_null(connection[0]) ? 1 : 0; }), 0);
  for (int end : {connection[0], connection[1], kept[0], kept[1]}) ::close(end);
}

TEST(ForkGuard, NumbersThatNoDescriptorHasAreIgnored) {
  for (int number : {-1, 1 << 20, 1 << 30}) {
    close_in_child(number);
    keep_in_child(number);
  }
  EXPECT_EQ(support::in_child([] { return 0; }), 0);
}

TEST(ForkGuard, SaysWhatToDo) {
  const Status status = forked_status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  for (const char* part : {"belongs to the process that started it", "fork()", "exec", "start"})
    EXPECT_NE(status.message().find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace runtime
