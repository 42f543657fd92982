#include "runtime/control/label_value.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

TEST(LabelValue, WhatCouldBeAskedForIsAValue) {
  for (const char* value : {"", "a", "rack 7", "in", "a*", "no!", "zone-\xc3\xa9", "in (a"})
    EXPECT_TRUE(check_label_value(value).ok()) << value;
}

TEST(LabelValue, WhatReadsAsASelectorIsNone) {
  for (const char* value : {"!", "!a", "in(", "in(a)", "*", "a,b", ","})
    expect_failure(check_label_value(value), ErrorCode::kInvalidArgument, {"selector"});
}

TEST(LabelValue, ControlCharactersAreNamed) {
  for (const char* value : {"a\nb", "\t", "\x7f", "a\x1b[0m"})
    expect_failure(check_label_value(value), ErrorCode::kInvalidArgument, {"control characters"});
  EXPECT_FALSE(check_label_value(std::string("a\0b", 3)).ok());
}

}  // namespace
}  // namespace runtime
