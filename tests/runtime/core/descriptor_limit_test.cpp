#include "runtime/core/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/core/status.h"

namespace runtime {
namespace {

rlim_t soft_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

/// The exit code of a child whose limits are these.
template <class Body>
int with_limits(rlim_t soft, rlim_t hard, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit limit{soft, hard};
    ::_exit(::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? body() : 99);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(DescriptorLimit, IsRaisedToTheHardOneAndRestored) {
  EXPECT_EQ(with_limits(64, 200,
                        [] {
                          raise_descriptor_limit();
                          if (soft_limit() != 200) return 1;
                          restore_descriptor_limit();
                          return soft_limit() == 64 ? 0 : 2;
                        }),
            0);
}

TEST(DescriptorLimit, OneThatWasNotRaisedStays) {
  EXPECT_EQ(with_limits(200, 200,
                        [] {
                          raise_descriptor_limit();
                          restore_descriptor_limit();
                          return soft_limit() == 200 ? 0 : 1;
                        }),
            0);
}

TEST(DescriptorLimit, AFailureNamesDescriptorsTheLimitAndTheCure) {
  const Status status = errno_status(EMFILE, "opening it");
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  const std::string limit = std::to_string(soft_limit());
  for (const std::string part : {"opening it", "Too many open files", "descriptors", "ulimit -n"})
    EXPECT_NE(status.message().find(part), std::string::npos) << part << ": " << status.message();
  EXPECT_NE(status.message().find(limit), std::string::npos) << status.message();
  EXPECT_NE(errno_status(ENFILE, "x").message().find("fs.file-max"), std::string::npos);
}

}  // namespace
}  // namespace runtime
