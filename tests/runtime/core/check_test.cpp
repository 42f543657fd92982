#include "runtime/core/check.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(CheckDeath, SaysWhereAndWhat) {
  int size = 3;
  CHECK(size == 3);
  EXPECT_DEATH(CHECK(size > 3), "check_test.cpp:[0-9]+: check failed: size > 3");
}

}  // namespace
}  // namespace runtime
