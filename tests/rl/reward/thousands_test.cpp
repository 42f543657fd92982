#include "rl/reward/thousands.h"

#include <gtest/gtest.h>

#include <utility>

namespace rl {
namespace {

TEST(Thousands, GroupsOfThreeAreOneNumber) {
  const std::pair<const char*, const char*> cases[] = {{"1,234", "1234"},
                                                       {"1,234,567", "1234567"},
                                                       {"1 234 567.5", "1234567.5"},
                                                       {"-1 000", "-1000"},
                                                       {"1,000, 2,000", "1000, 2000"},
                                                       {"1,23", "1,23"},
                                                       {"(1,234)", "(1,234)"},
                                                       {"1 0", "1 0"},
                                                       {"1234,567", "1234,567"},
                                                       {"0,123", "0,123"},
                                                       {"x 100", "x 100"},
                                                       {"", ""}};
  for (const auto& [text, number] : cases)
    EXPECT_EQ(without_thousands_separators(text), number) << text;
}

}  // namespace
}  // namespace rl
