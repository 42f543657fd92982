#include "runtime/process/descendants.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "tests/runtime/process/children.h"

namespace runtime {
namespace {

// Of this process: tests of others that run at the same time kill what has their mark.
std::string mark() { return "DESCENDANTS_TEST=" + std::to_string(::getpid()); }

/// Starts the script, stops it when it has said "ready", kills what it started and then itself.
/// Returns what is said after that; a process that is left would keep the pipe open.
std::string kill_all(const std::string& script) {
  Pipe output = test_pipe();
  SpawnedProcess process = spawned(shell(script, output));
  EXPECT_EQ(read_line(output), "ready");
  process.signal(SIGSTOP);
  kill_descendants(process.pid(), mark());
  EXPECT_FALSE(process.ended()) << "it was not asked for";
  process.signal(SIGKILL);
  std::string rest = read_to_end(output);
  process.reap();
  return rest;
}

// All are there when it says so: one that is started meanwhile by a process that is killed belongs
// to no parent.
TEST(Descendants, ThoseInSessionsOfTheirOwnAreKilled) {
  EXPECT_EQ(kill_all("setsid sh -c 'sleep 300 & sleep 300 & echo ready; wait' & wait"), "");
}

TEST(Descendants, OrphansAreFoundByTheirMark) {
  const std::string orphan = "setsid sh -c \"echo ready; exec sleep 300\" &";
  EXPECT_EQ(kill_all("(env " + mark() + " " + orphan + "); exec sleep 300"), "");
}

}  // namespace
}  // namespace runtime
