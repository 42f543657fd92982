// Requests of a process to the system in its own name, and to the simulation where it is simulated.
#include "runtime/core/end_process.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "runtime/core/environment.h"
#include "tests/support/in_child.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

class SimulatedProcess final : public support::TurnedClock {
 public:
  const char* variable(const char* name) const override {
    return std::strcmp(name, "STARLING_TEST") == 0 ? "simulated" : nullptr;
  }
  void end_process() override { ++ends; }

  int ends = 0;
};

TEST(EndProcess, RunsNothingThatIsLeftForAnExit) {
  const auto ends = [](int signal) {
    return support::in_child([signal] {
      std::atexit([] { ::_exit(7); });
      end_process(signal);
      return 8;
    });
  };
  EXPECT_EQ(ends(0), 0);
  EXPECT_EQ(ends(SIGKILL), -1);
}

TEST(EndProcess, ASimulatedOneEndsInItsSimulation) {
  SimulatedProcess simulated;
  end_process(SIGKILL);
  end_process(0);
  EXPECT_EQ(simulated.ends, 2);
}

TEST(EnvironmentVariable, IsThatOfTheSimulatedProcessWhereThereIsOne) {
  const support::ScopedVariable set("STARLING_TEST", "real");
  const support::ScopedVariable other("STARLING_OTHER", "real");
  EXPECT_STREQ(environment_variable("STARLING_TEST"), "real");
  const SimulatedProcess simulated;
  EXPECT_STREQ(environment_variable("STARLING_TEST"), "simulated");
  EXPECT_EQ(environment_variable("STARLING_OTHER"), nullptr);
}

}  // namespace
}  // namespace runtime
