#include "tests/runtime/sharing/ownership_walk.h"

namespace runtime::test {
namespace {

TEST_F(OwnershipWalk, NothingIsLostOrLeft) { walk(first_seed(), 120); }

}  // namespace
}  // namespace runtime::test
