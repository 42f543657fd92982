// The steps of a child before its program begins, each in a forked child.
#include "runtime/process/child_setup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "runtime/transport/file_descriptor.h"
#include "tests/runtime/process/children.h"
#include "tests/support/in_child.h"

namespace runtime {
namespace {

using support::in_child;

/// In a child: which of these does not hold, from 1; 0: all do.
int first_wrong(std::initializer_list<bool> checks) {
  int number = 0;
  for (const bool holds : checks) {
    ++number;
    if (!holds) return number;
  }
  return 0;
}

class PreparedChildTest : public ::testing::Test {
 protected:
  static PreparedChild prepared(const ChildSetup& setup) {
    return PreparedChild(setup, no_signals());
  }
  /// A pipe that has one letter to read, and lets no reader of another wait.
  static Pipe pipe_with(char letter) {
    Pipe pipe = test_pipe();
    EXPECT_EQ(::write(pipe.write.get(), &letter, 1), 1);
    ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    return pipe;
  }
  static bool reads(int descriptor, char letter) {
    char got = 0;
    return ::read(descriptor, &got, 1) == 1 && got == letter;
  }
  static bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }
  static bool closes_at_exec(int descriptor) {
    return (::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0;
  }
  using Handler = void (*)(int);
  static Handler handler_of(int number) {
    struct sigaction present = {};
    ::sigaction(number, nullptr, &present);
    return present.sa_handler;
  }
  static void no_op(int) {}
};

TEST_F(PreparedChildTest, DescriptorsChangePlacesAndTheReservedOneMakesRoom) {
  Pipe first = pipe_with('1'), second = pipe_with('2'), reserved = pipe_with('r');
  const int a = first.read.get(), b = second.read.get(), kept = reserved.read.get();
  ChildSetup setup;
  setup.descriptors = {{a, b}, {b, a}, {a, kept}};
  PreparedChild child = prepared(setup);
  EXPECT_EQ(in_child([&] {
              int moved = kept;
              if (!child.map_descriptors(moved)) return 100;
              return first_wrong({moved != kept, reads(moved, 'r'), closes_at_exec(moved),
                                  reads(b, '1'), reads(a, '2'), !closes_at_exec(a)});
            }),
            0);
}

TEST_F(PreparedChildTest, AReservedDescriptorThatIsNotInTheWayStays) {
  ChildSetup setup;
  setup.descriptors = {{1, 2}};
  PreparedChild child = prepared(setup);
  const Pipe reserved = test_pipe();
  EXPECT_EQ(in_child([&] {
              int same = reserved.read.get();
              return first_wrong({child.map_descriptors(same), same == reserved.read.get()});
            }),
            0);
}

TEST_F(PreparedChildTest, ADescriptorThatIsNotOpenIsAnErrorOfItsNumber) {
  int closed = -1;
  {
    const Pipe pipe = test_pipe();
    closed = pipe.read.get();
  }
  ChildSetup setup;
  setup.descriptors = {{closed, 2}};
  PreparedChild child = prepared(setup);
  EXPECT_EQ(in_child([&] {
              int none = -1;
              errno = 0;
              return first_wrong({!child.map_descriptors(none), errno == EBADF});
            }),
            0);
}

TEST_F(PreparedChildTest, OthersAreClosedNowOrAtExec) {
  const Pipe below = test_pipe(), kept = test_pipe(), above = test_pipe();
  ASSERT_LT(below.read.get(), kept.read.get());
  ChildSetup setup;
  setup.descriptors = {{kept.read.get(), kept.read.get()}};
  setup.closes_others = true;
  const PreparedChild child = prepared(setup);
  for (const bool at_exec : {false, true}) {
    EXPECT_EQ(
        in_child([&] {
          const int others[] = {below.read.get(), above.read.get()};
          for (const int number : {others[0], kept.read.get(), others[1]})
            ::fcntl(number, F_SETFD, 0);
          child.close_others(at_exec);
          return first_wrong({is_open(kept.read.get()), !closes_at_exec(kept.read.get()),
                              is_open(2), !closes_at_exec(2), is_open(others[0]) == at_exec,
                              is_open(others[1]) == at_exec, !at_exec || closes_at_exec(others[0]),
                              !at_exec || closes_at_exec(others[1])});
        }),
        0)
        << (at_exec ? "at exec" : "now");
  }
}

TEST_F(PreparedChildTest, OthersStayWhereThatIsNotAskedFor) {
  const Pipe other = test_pipe();
  const PreparedChild child = prepared({});
  EXPECT_EQ(in_child([&] {
              child.close_others(false);
              return first_wrong({is_open(other.read.get())});
            }),
            0);
}

TEST_F(PreparedChildTest, HandlersGiveWayToAProgramOnly) {
  ChildSetup setup;
  setup.ignored_signals = {SIGHUP};
  const PreparedChild child = prepared(setup);
  for (const bool for_program : {false, true}) {
    EXPECT_EQ(in_child([&] {
                ::signal(SIGUSR1, no_op);
                ::signal(SIGUSR2, SIG_IGN);
                ::signal(SIGHUP, no_op);
                child.set_signals(for_program);
                return first_wrong({handler_of(SIGUSR1) == (for_program ? SIG_DFL : no_op),
                                    handler_of(SIGUSR2) == SIG_IGN, handler_of(SIGHUP) == SIG_IGN});
              }),
              0)
        << for_program;
  }
}

TEST_F(PreparedChildTest, IgnoredSignalsAreResetForAProgramOnRequest) {
  ChildSetup setup;
  setup.resets_signals = true;
  setup.ignored_signals = {SIGHUP};
  const PreparedChild child = prepared(setup);
  EXPECT_EQ(in_child([&] {
              ::signal(SIGUSR2, SIG_IGN);
              ::signal(SIGHUP, SIG_IGN);
              child.set_signals(true);
              return first_wrong({handler_of(SIGUSR2) == SIG_DFL, handler_of(SIGHUP) == SIG_IGN});
            }),
            0);
}

TEST_F(PreparedChildTest, TheMaskIsTheThreadsOrTheSetups) {
  sigset_t threads, own;
  ::sigemptyset(&threads);
  ::sigaddset(&threads, SIGUSR1);
  ::sigemptyset(&own);
  ::sigaddset(&own, SIGUSR2);
  ChildSetup setup;
  for (const bool has_own : {false, true}) {
    if (has_own) setup.signal_mask = own;
    const PreparedChild child(setup, threads);
    EXPECT_EQ(in_child([&] {
                child.set_mask();
                sigset_t now;
                ::sigprocmask(SIG_SETMASK, nullptr, &now);
                return first_wrong({::sigismember(&now, SIGUSR1) == !has_own,
                                    ::sigismember(&now, SIGUSR2) == has_own});
              }),
              0)
        << has_own;
  }
}

TEST_F(PreparedChildTest, AChildWhoseParentDiedMeanwhileEnds) {
  ChildSetup setup;
  setup.death_signal = SIGTERM;
  PreparedChild child = prepared(setup);
  EXPECT_EQ(in_child([&] {
              child.ask_for_death_signal();
              return 0;
            }),
            0)
      << "this process lives";
  child.set_parent(::getppid());  // as if another process had made it
  EXPECT_EQ(in_child([&] {
              child.ask_for_death_signal();
              return 0;
            }),
            126);
  const PreparedChild careless = prepared({});
  EXPECT_EQ(in_child([&] {
              careless.ask_for_death_signal();
              return 0;
            }),
            0);
}

TEST_F(PreparedChildTest, AGroupOrASessionIsTheChildsOwn) {
  for (const ProcessGroup group :
       {ProcessGroup::kInherited, ProcessGroup::kOwn, ProcessGroup::kSession}) {
    ChildSetup setup;
    setup.group = group;
    const PreparedChild child = prepared(setup);
    const pid_t before = ::getpgrp(), session = ::getsid(0);
    EXPECT_EQ(in_child([&] {
                child.join_group();
                const bool is_own = group != ProcessGroup::kInherited;
                const bool leads = group == ProcessGroup::kSession;
                return first_wrong({::getpgrp() == (is_own ? ::getpid() : before),
                                    ::getsid(0) == (leads ? ::getpid() : session)});
              }),
              0);
  }
}

}  // namespace
}  // namespace runtime
