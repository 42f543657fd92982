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
                                                       {"\\{1,234\\}", "\\{1,234\\}"},
                                                       {"(x, 1,234)", "(x, 1234)"},
                                                       {"((1,234), 5)", "((1,234), 5)"},
                                                       {"\\sqrt{1,234}", "\\sqrt{1234}"},
                                                       {"2^{1,234}", "2^{1234}"},
                                                       {"(0, 1,250]", "(0, 1250]"},
                                                       {"200,100,5", "200,100,5"},
                                                       {"1,000,2", "1000,2"},
                                                       {"2,000,3,000", "2000,3000"},
                                                       {"0,1,250", "0,1,250"},
                                                       {"(1 000, 2)", "(1000, 2)"},
                                                       {"x = -1 000", "x = -1000"},
                                                       {"1 0", "1 0"},
                                                       {"1234,567", "1234,567"},
                                                       {"0,123", "0,123"},
                                                       {"x 100", "x 100"},
                                                       {"", ""}};
  for (const auto& [text, number] : cases)
    EXPECT_EQ(without_thousands_separators(text), number) << text;
}

TEST(Thousands, AGroupThatBeginsWithZeroIsNoMemberOfAList) {
  const std::pair<const char*, const char*> cases[] = {
      {"(1,000)", "(1000)"},  {"\\{1,000,250\\}", "\\{1000250\\}"}, {"1,200,050,3", "1,200050,3"},
      {"(1,234)", "(1,234)"}, {"100,200,300", "100,200,300"},       {"0,000", "0,000"}};
  for (const auto& [text, number] : cases)
    EXPECT_EQ(without_thousands_separators(text, Groups::kCertain), number) << text;
}

}  // namespace
}  // namespace rl
