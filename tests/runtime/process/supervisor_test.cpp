// Supervisor and keeper of a program, over the socket of a node that is the test. Programs that
// stop or kill them: child_process_test.cpp.
#include "runtime/process/supervisor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>

#include "tests/runtime/process/children.h"

namespace runtime {
namespace {

[[noreturn]] void sleep_for_good() {
  ::alarm(60);  // should it be forgotten
  for (;;) ::pause();
}

/// A program below its supervisor and that one's keeper, which is this process's child.
class Supervised {
 public:
  /// Runs `program` in a copy of this process; it returns its exit code. Its input ends with
  /// let_go(), its output comes to the test.
  template <class Program>
  explicit Supervised(Program program) {
    Result<SocketPair> sockets = make_socket_pair();
    EXPECT_TRUE(sockets.ok()) << sockets.status().to_string();
    if (!sockets.ok()) return;
    keeper_ = ::fork();
    if (keeper_ == 0) {
      sockets->ours.reset();
      run(program, sockets->theirs.get());
    }
    orders_ = std::move(sockets->ours);
  }
  Supervised(const Supervised&) = delete;
  Supervised& operator=(const Supervised&) = delete;
  ~Supervised() {
    hang_up();
    if (keeper_ > 0) (void)status();
  }

  /// The next byte of the output.
  std::string said() {
    char byte = 0;
    pollfd ready{output_.read.get(), POLLIN, 0};
    const bool is_there =
        ::poll(&ready, 1, 20'000) > 0 && ::read(output_.read.get(), &byte, 1) == 1;
    return is_there ? std::string(1, byte) : "nothing";
  }
  /// The output until all that have it have ended.
  std::string rest() { return read_to_end(output_); }
  void let_go() { input_.write.reset(); }
  void order(SupervisorOrder what) {
    const char byte = static_cast<char>(what);
    EXPECT_EQ(::write(orders_.get(), &byte, 1), 1);
  }
  /// As if the node had died.
  void hang_up() { orders_.reset(); }
  /// How the keeper has ended.
  int status() {
    int status = -1;
    EXPECT_GT(::waitpid(std::exchange(keeper_, -1), &status, 0), 0);
    return status;
  }

 private:
  template <class Program>
  [[noreturn]] void run(Program program, int orders) {
    adopt_orphans();
    const pid_t keeper = ::getpid();
    const pid_t supervisor = ::fork();
    if (supervisor > 0) keep_supervisor(supervisor, orders);
    ::setpgid(0, 0);
    adopt_orphans();
    const pid_t child = ::fork();
    if (child > 0) supervise(child, keeper, orders);
    ::setpgid(0, 0);
    ::close(orders);
    ::dup2(input_.read.get(), 0);
    ::dup2(output_.write.get(), 1);
    for (Pipe* pipe : {&input_, &output_}) {
      pipe->read.reset();
      pipe->write.reset();
    }
    ::_exit(program());
  }

  Pipe input_ = test_pipe(), output_ = test_pipe();
  FileDescriptor orders_;
  pid_t keeper_ = -1;
};

void say(char byte) { (void)!::write(1, &byte, 1); }

/// Until the other end is closed.
void await_end(int input) {
  char none;
  (void)!::read(input, &none, 1);
}

/// Starts a process in a separate session, without a parent.
template <class Body>
void start_orphan(Body body) {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() == 0) body();
  ::_exit(0);
}

/// Leaves an orphan that does not end by itself.
int run_with_orphan() {
  start_orphan([] {
    say('o');
    sleep_for_good();
  });
  await_end(0);
  return 7;
}

TEST(Supervisor, EndsAsTheProgramDidAndOrphansEndWithIt) {
  Supervised program(run_with_orphan);
  ASSERT_EQ(program.said(), "o");
  program.let_go();
  EXPECT_EQ(program.rest(), "") << "the orphan has the pipe until it ends";
  const int status = program.status();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Supervisor, ASignalThatKillsTheProgramIsItsEnd) {
  Supervised program([] {
    ::kill(::getpid(), SIGTERM);
    return 0;
  });
  EXPECT_EQ(program.rest(), "");
  const int status = program.status();
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

// An orphan that cleans up behind the program.
TEST(Supervisor, AnOrderToWaitLetsTheRestEndByItself) {
  Supervised program([] {
    int gate[2];
    if (::pipe(gate) != 0) return 1;
    start_orphan([&] {
      ::close(gate[1]);
      say('o');
      await_end(gate[0]);  // with the program
      say('l');
    });
    await_end(0);
    return 7;
  });
  ASSERT_EQ(program.said(), "o");
  program.order(SupervisorOrder::kWait);
  program.let_go();
  EXPECT_EQ(program.rest(), "l");
  EXPECT_EQ(WEXITSTATUS(program.status()), 7) << "the program's end counts";
}

TEST(Supervisor, AnOrderToKillEndsAllAlsoAfterOneToWait) {
  for (const bool waits : {false, true}) {
    Supervised program(run_with_orphan);
    ASSERT_EQ(program.said(), "o");
    if (waits) program.order(SupervisorOrder::kWait);
    program.order(SupervisorOrder::kKill);
    EXPECT_EQ(program.rest(), "");
    const int status = program.status();
    EXPECT_TRUE(WIFSIGNALED(status)) << waits;
    EXPECT_EQ(WTERMSIG(status), SIGKILL) << waits;
  }
}

TEST(Supervisor, AllEndWithTheNode) {
  for (const bool waits : {false, true}) {
    Supervised program(run_with_orphan);
    ASSERT_EQ(program.said(), "o");
    if (waits) program.order(SupervisorOrder::kWait);
    program.hang_up();
    EXPECT_EQ(program.rest(), "");
    EXPECT_EQ(WTERMSIG(program.status()), SIGKILL) << waits;
  }
}

}  // namespace
}  // namespace runtime
