#include "tests/runtime/sharing/ownership_walk.h"

namespace runtime::test {
namespace {

TEST_F(OwnershipWalk, NothingIsLostOrLeftInManyWalks) {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 8 && !HasFailure(); ++seed) walk(seed, 300);
}

}  // namespace
}  // namespace runtime::test
