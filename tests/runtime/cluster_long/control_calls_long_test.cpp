// Five minutes of calls to a head that is killed about every second.
#include <cstdlib>

#include "tests/runtime/cluster/control_calls_fixture.h"

namespace runtime::test {
namespace {

TEST_F(ControlCallsTest, HappenOnceForMinutes) {
  const char* given = std::getenv("CONTROL_CALLS_SECONDS");
  call_while_heads_die(std::chrono::seconds(given ? std::atoi(given) : 300), 1);
}

}  // namespace
}  // namespace runtime::test
