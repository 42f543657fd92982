#include "runtime/process/orphan_keeper.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/transport/file_descriptor.h"
#include "tests/runtime/process/children.h"
#include "tests/support/in_child.h"

namespace runtime {
namespace {

/// A process that leaves an orphan with a copy of the pipe, in a separate session.
void leave_orphan() {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  ::alarm(60);  // should it be forgotten
  for (;;) ::pause();
}

TEST(OrphanKeeper, EndsAsTheChildDidAndOrphansEndWithIt) {
  Pipe pipe = test_pipe();
  EXPECT_EQ(support::in_child([&] {
              continue_in_child(pipe.read.get());
              leave_orphan();
              return 7;
            }),
            7);
  bool ended = false;
  read_to_end(pipe, ended);
  EXPECT_TRUE(ended) << "the orphan has the pipe";
}

/// Leaves an orphan by way of many, each of which ends as soon as it has started the next.
void leave_orphan_of_orphans() {
  if (::fork() != 0) return;
  ::setsid();
  for (int i = 0; i < 200; ++i)
    if (::fork() != 0) ::_exit(0);
  ::alarm(60);  // should it be forgotten
  for (;;) ::pause();
}

TEST(OrphanKeeper, OrphansThatKeepStartingOthersEndToo) {
  for (int times = 0; times < 10; ++times) {
    Pipe pipe = test_pipe();
    EXPECT_EQ(support::in_child([&] {
                continue_in_child(pipe.read.get());
                leave_orphan_of_orphans();
                return 7;
              }),
              7);
    read_to_end(pipe);
  }
}

TEST(OrphanKeeper, ASignalThatKillsTheChildKillsItToo) {
  EXPECT_EQ(support::in_child([] {
              int ends[2];
              if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 1;
              continue_in_child(ends[0]);
              ::kill(::getpid(), SIGKILL);
              return 2;
            }),
            -1);
}

TEST(OrphanKeeper, LetsGoOfTheConnectionAndOfItsOutput) {
  Pipe pipe = test_pipe(), proceed = test_pipe();
  const pid_t first = ::fork();
  if (first == 0) {
    const int connection = pipe.write.get();
    ::dup2(connection, 1);
    proceed.write.reset();
    continue_in_child(connection);
    ::close(connection);
    ::close(1);  // from here on the keeper alone could hold the pipe
    char byte = 0;
    (void)!::read(proceed.read.get(), &byte, 1);
    ::_exit(3);
  }
  bool ended = false;
  read_to_end(pipe, ended);
  EXPECT_TRUE(ended);
  ::kill(first, SIGTERM);  // asks the keeper to end: the child is to say when
  proceed.write.reset();
  int status = -1;
  EXPECT_EQ(::waitpid(first, &status, 0), first);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

}  // namespace
}  // namespace runtime
