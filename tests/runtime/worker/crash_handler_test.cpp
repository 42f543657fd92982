#include "runtime/worker/crash_handler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>

#include "tests/support/file_bytes.h"
#include "tests/support/temporary_folder.h"

extern "C" [[gnu::noinline]] void starling_crash_landmark(volatile int* place) { *place = 1; }

extern "C" [[gnu::noinline]] int starling_overflow_landmark(volatile int* above) {
  volatile int frame[256];
  frame[0] = above[0] + 1;
  if (frame[0] < 0) return 0;  // never so deep
  const int below = starling_overflow_landmark(frame);
  return below + frame[0];
}

namespace runtime {
namespace {

class CrashHandler : public ::testing::Test {
 protected:
  /// Runs the body in a child that has the handler. Returns the signal that ends it.
  template <class Body>
  int crash(Body body) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit none{};
      ::setrlimit(RLIMIT_CORE, &none);
      ::dup2(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDERR_FILENO);
      install_crash_handler("worker 7f3a");
      body();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    text_ = support::content_of(path_);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  [[gnu::noinline]] static void fail() { throw std::runtime_error("out of range"); }
  bool says(const std::string& part) const { return text_.find(part) != std::string::npos; }

  support::TemporaryFolder folder_;
  const std::string path_ = folder_.file("stderr");
  std::string text_;
};

TEST_F(CrashHandler, NamesTheSignalThePlaceAndTheFunctions) {
  EXPECT_EQ(crash([] { starling_crash_landmark(reinterpret_cast<int*>(0x10)); }), SIGSEGV);
  EXPECT_TRUE(text_.starts_with("worker 7f3a: SIGSEGV at address 0x10, backtrace:\n")) << text_;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // whose frame is before it
  EXPECT_TRUE(says("starling_crash_landmark")) << text_;
#else
  EXPECT_TRUE(says("  #0 starling_crash_landmark")) << text_;
#endif
#ifndef __SANITIZE_THREAD__  // which leaves names as they are
  EXPECT_TRUE(says("::TestBody() +0x")) << "names are readable: " << text_;
#endif
}

TEST_F(CrashHandler, AnExceptionThatIsNotCaughtIsAnAbort) {
  EXPECT_EQ(crash([]() noexcept { fail(); }), SIGABRT);
  EXPECT_TRUE(says("worker 7f3a: SIGABRT, backtrace:\n")) << text_;
}

TEST_F(CrashHandler, AnOverflowOfTheStackIsReportedToo) {
  EXPECT_EQ(crash([] {
              volatile int begin = 0;
              starling_overflow_landmark(&begin);
            }),
            SIGSEGV);
  EXPECT_TRUE(says("worker 7f3a: SIGSEGV at address 0x")) << text_;
  EXPECT_TRUE(says("starling_overflow_landmark")) << text_;
}

TEST_F(CrashHandler, OtherSignalsEndTheProcessInSilence) {
  EXPECT_EQ(crash([] { ::raise(SIGTERM); }), SIGTERM);
  EXPECT_EQ(text_, "");
}

}  // namespace
}  // namespace runtime
