#include "runtime/core/duration.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;

TEST(Duration, IsReadInItsUnit) {
  const std::vector<std::pair<const char*, std::chrono::milliseconds>> texts = {
      {"500ms", 500ms}, {"30s", 30s}, {"30", 30s},  {"1.5min", 90s}, {"2m", 2min},
      {"2h", 2h},       {"0", 0ms},   {"24h", 24h}, {"0.1ms", 1ms},  {"1e2ms", 100ms}};
  for (const auto& [text, duration] : texts) {
    const auto read = parse_duration(text);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, duration) << text;
  }
}

TEST(Duration, WhatIsNoneIsNamed) {
  for (const char* text : {"", "s", "5 s", " 5s", "5d", "5S", "nan", "inf", "1e999", "five"})
    expect_failure(parse_duration(text).status(), ErrorCode::kInvalidArgument,
                   {"'" + std::string(text) + "'", "like 30s"});
  expect_failure(parse_duration("-1s").status(), ErrorCode::kInvalidArgument, {"below zero"});
  expect_failure(parse_duration("24.1h").status(), ErrorCode::kInvalidArgument, {"above 24 h"});
  const Status lengthy = parse_duration(std::string(10'000, 'x')).status();
  EXPECT_LT(lengthy.message().size(), 200u);
}

TEST(Duration, IsRoundedToWhatSaysEnough) {
  EXPECT_EQ(describe_duration(999ms), "999 ms");
  EXPECT_EQ(describe_duration(1499ms), "1 s");
  EXPECT_EQ(describe_duration(1500ms), "2 s");
  EXPECT_EQ(describe_duration(599s), "599 s");
  EXPECT_EQ(describe_duration(10min + 30s), "11 min");
}

}  // namespace
}  // namespace runtime
