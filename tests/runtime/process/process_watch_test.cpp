#include "runtime/process/process_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/transport/blocking.h"

namespace runtime {
namespace {

using std::chrono::seconds;

class ProcessWatchTest : public ::testing::Test {
 protected:
  /// On the loop, as a node does it.
  void watch(pid_t process) {
    on_loop(loop_, [&] {
      auto made = ProcessWatch::start(loop_, process, [this] {
        ++ended_;
        event_.set();
      });
      EXPECT_TRUE(made.ok()) << made.status().message();
      if (made.ok()) watch_ = *std::move(made);
      return true;
    });
  }
  void forget() {
    on_loop(loop_, [&] {
      watch_.reset();
      return true;
    });
  }
  bool wait() { return loop_.run_until(event_, deadline_after(seconds(10))); }

  EventLoop loop_;
  Event event_{loop_};
  int ended_ = 0;
  std::shared_ptr<ProcessWatch> watch_;
};

TEST_F(ProcessWatchTest, TellsOfTheEndOnce) {
  const pid_t process = ::fork();
  if (process == 0) ::pause();
  watch(process);
  EXPECT_FALSE(event_.is_set());
  ::kill(process, SIGKILL);
  EXPECT_TRUE(wait());
  ::waitpid(process, nullptr, 0);
  forget();
  EXPECT_EQ(ended_, 1);
}

TEST_F(ProcessWatchTest, TellsOfOneThatHasEnded) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(0);
  ::waitpid(process, nullptr, 0);
  watch(process);
  EXPECT_TRUE(wait());
  forget();
}

TEST_F(ProcessWatchTest, CallsNothingOnceItIsGone) {
  const pid_t process = ::fork();
  if (process == 0) ::pause();
  watch(process);
  forget();
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  const pid_t other = ::fork();  // a later end that is told
  if (other == 0) ::_exit(0);
  ::waitpid(other, nullptr, 0);
  watch(other);
  EXPECT_TRUE(wait());
  EXPECT_EQ(ended_, 1);
  forget();
}

}  // namespace
}  // namespace runtime
