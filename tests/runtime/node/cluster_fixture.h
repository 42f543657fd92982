// Clusters of real `starling` processes, in a session folder of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/process/session.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary_folder.h"

namespace runtime {

using support::eventually;

struct CommandResult {
  int code = -1;  // 128 + N after signal N
  std::string out, err;
  std::chrono::milliseconds took{0};

  /// The last line of stdout.
  std::string last_line() const;
};

/// A command that runs next to the test.
class BackgroundCommand {
 public:
  explicit BackgroundCommand(std::vector<std::string> argv);
  ~BackgroundCommand();  // kills it
  int pid() const { return pid_; }
  /// Waits until stdout contains this; the text so far.
  std::string wait_for_output(const std::string& part);
  CommandResult finish();

 private:
  int pid_ = -1;
  int out_ = -1, err_ = -1;
  CommandResult result_;
};

CommandResult run_command(std::vector<std::string> argv);

/// Whether a process runs (a zombie does not).
bool process_runs(int pid);
/// The process that `parent` runs with this as its first argument; 0: none.
int child_of(int parent, const std::string& argument);
/// Resident memory in KiB.
long resident_kib(int pid);

class ClusterTest : public ::testing::Test {
 protected:
  static std::string program();  // starling
  static std::string self();     // this test program
  CommandResult starling(std::vector<std::string> arguments);
  /// The address; fails the test if it does not start.
  std::string start_head(std::vector<std::string> more = {});
  std::string start_node(const std::string& head, std::vector<std::string> more = {});
  SessionInfo session_of(const std::string& address);
  /// Ends everything and checks that nothing is left.
  void TearDown() override;

  support::TemporaryFolder folder_;
  support::ScopedVariable root_{"STARLING_SESSION_ROOT", folder_.path().c_str()};
  support::TemporaryFolder cache_folder_;
  support::ScopedVariable cache_{"STARLING_CACHE", cache_folder_.path().c_str()};
  support::ScopedVariable address_{"STARLING_ADDRESS", nullptr};
  support::ScopedVariable token_{"STARLING_TOKEN", nullptr};
  support::ScopedVariable token_file_{"STARLING_TOKEN_FILE", nullptr};
  support::ScopedVariable job_{"STARLING_JOB", nullptr};
};

}  // namespace runtime
