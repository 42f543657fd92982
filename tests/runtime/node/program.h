// The test program itself plays drivers and workers: what main() does when it is not running tests.
#pragma once

#include <memory>
#include <string>

#include "runtime/control/node_client.h"
#include "runtime/transport/blocking.h"

namespace runtime {

/// Serves one actor of the classes below until the node ends it. Returns the exit code.
///   Echo     lives, prints "echo built" to stdout and its OMP_NUM_THREADS to stderr
///   Throws   its constructor fails with kTaskFailed "boom"
///   Chatty   writes 20 MB to stdout in its constructor, and then "the end"
///   Crashes  gets SIGSEGV in its constructor, after a line on stderr
///   Exits    exits with code 5 in its constructor
///   Sleeps   its constructor never returns
///   Stubborn lives and ignores SIGTERM
int serve_as_worker();

/// `driver hold`: creates two Echo actors, prints "ready PID PID", lives until killed.
/// `driver folders`: an actor on each node says what folder it is in.
/// `driver exit N`: creates an actor, prints its constructor's output, returns N.
int run_as_driver(int argc, char** argv);

/// A registered driver in this process, with blocking calls.
class TestDriver {
 public:
  static Result<std::unique_ptr<TestDriver>> connect(const std::string& address,
                                                     std::uint32_t warm_workers = 0);
  ~TestDriver();

  Result<ActorAddress> create(ActorSpec spec,
                              std::chrono::milliseconds timeout = std::chrono::seconds(10));
  /// An actor that asks for nothing.
  Result<ActorAddress> create(const std::string& class_name, ResourceMap resources = {},
                              std::string name = "");
  Result<ActorState> state(ActorId actor);
  Status kill(ActorId actor);
  Result<ClusterState> cluster();

  NodeClient& client() { return *client_; }
  EventLoop& loop() { return loop_; }
  /// What workers wrote so far, with prefixes, stdout and stderr together.
  std::string logged();

 private:
  EventLoop loop_;
  std::unique_ptr<NodeClient> client_;
  std::mutex mutex_;
  std::string logged_;
};

}  // namespace runtime
