// All faults at random, for a short time. tests/runtime/cluster_long does so for longer.
#include "faults_fixture.h"

namespace runtime::test {
namespace {

TEST_F(FaultsTest, NoPromiseIsBroken) {
  run_faults(setting("FAULTS_SEED", 1), 5, std::chrono::seconds(setting("FAULTS_SECONDS", 10)));
}

}  // namespace
}  // namespace runtime::test
