#include "runtime/core/readable_name.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(ReadableName, IsThatOfTheSource) {
  EXPECT_EQ(readable_name("N7runtime11ObjectStoreE"), "runtime::ObjectStore");
  EXPECT_EQ(readable_name("_ZN7runtime11ObjectStore4stopEv"), "runtime::ObjectStore::stop()");
}

TEST(ReadableName, StaysAsItIsWhereItCannotBeRead) {
  EXPECT_EQ(readable_name("main.cold"), "main.cold");
  EXPECT_EQ(readable_name(""), "");
}

}  // namespace
}  // namespace runtime
