#include "placement/resource/resources.h"

#include <gtest/gtest.h>

#include <cmath>

namespace placement {
namespace {

Resources make(const runtime::ResourceMap& amounts) { return *Resources::from_map(amounts); }

TEST(Resources, ThousandTenthsGivenBackLeaveExactlyTheStart) {
  Resources left = make({{"CPU", 100}});
  Resources tenth = make({{"CPU", 0.1}});
  for (int i = 0; i < 1000; ++i) left -= tenth;
  EXPECT_TRUE(left.empty());
  for (int i = 0; i < 1000; ++i) left += tenth;
  EXPECT_EQ(left, make({{"CPU", 100}}));
}

TEST(Resources, CoversOnlyWhatIsThere) {
  Resources node = make({{"CPU", 2}, {"memory", 1e9}});
  EXPECT_TRUE(node.covers(make({})));
  EXPECT_TRUE(node.covers(make({{"CPU", 2}})));
  EXPECT_FALSE(node.covers(make({{"CPU", 2.0001}})));
  EXPECT_FALSE(node.covers(make({{"GPU", 1}})));
}

TEST(Resources, NamesWhatIsMissing) {
  Resources node = make({{"CPU", 2.5}});
  EXPECT_EQ(node.missing(make({{"CPU", 4}, {"GPU", 1}})), "CPU 4 (has 2.5), GPU 1 (has 0)");
  EXPECT_EQ(node.missing(make({{"CPU", 2}})), "");
}

TEST(Resources, MemoryIsInGigabytes) {
  const Resources node = make({{"memory", 4'999'999'999.0}});
  EXPECT_EQ(node.missing(make({{"memory", 5e9}})), "memory 5 GB (has 4.99 GB)");
  EXPECT_EQ(node.missing(make({{"memory", 5'000'000'001.0}}), make({{"memory", 12.5e9}})),
            "memory 5.01 GB (has 4.99 GB free of 12.5 GB)");
  EXPECT_EQ(make({{"CPU", 2}, {"memory", 1073741824}}).to_string(), "CPU 2, memory 1.08 GB");
  EXPECT_EQ(make({{"memory", 1000}}).to_string(), "memory 1000");
}

TEST(Resources, RefusesAmountsThatMakeNoSense) {
  for (double amount : {-1.0, std::nan(""), HUGE_VAL, 1e15, 0.00001}) {
    auto made = Resources::from_map({{"x", amount}});
    ASSERT_FALSE(made.ok()) << amount;
    EXPECT_EQ(made.status().code(), runtime::ErrorCode::kInvalidArgument);
    EXPECT_NE(made.status().message().find("'x'"), std::string::npos);
  }
  EXPECT_FALSE(Resources::from_map({{"", 1}}).ok());
}

TEST(Resources, MapsRoundTripAndZeroIsAbsent) {
  runtime::ResourceMap amounts{{"CPU", 0.5}, {"memory", 8589934592.0}};
  EXPECT_EQ(make(amounts).to_map(), amounts);
  EXPECT_TRUE(make({{"GPU", 0}}).empty());
  EXPECT_EQ(make({}).to_string(), "nothing");
  EXPECT_EQ(make({{"CPU", 0.05}, {"x", 3}}).to_string(), "CPU 0.05, x 3");
}

}  // namespace
}  // namespace placement
