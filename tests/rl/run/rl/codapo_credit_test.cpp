// What CoDaPO's two phases leave to a run that is resumed; see credit_test.cpp for its steps.
#include "rl/run/rl/codapo_credit.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rl {
namespace {

using nlohmann::ordered_json;

class CodapoCreditTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 10;

  CodapoCredit credit_{*advantage_estimator("codapo").of_responses(),
                       CodapoCreditOptions{.data_rows = kRows}};
};

TEST_F(CodapoCreditTest, TheFocusIsSaved) {
  EXPECT_EQ(credit_.save().dump(), R"({"focus":[]})");
  const ordered_json state{{"step", 7}, {"focus", ordered_json::array({kRows - 1, 0})}};
  ASSERT_TRUE(credit_.restore(state).ok());
  EXPECT_EQ(credit_.focus(), (std::vector<std::int64_t>{kRows - 1, 0}));
  EXPECT_EQ(credit_.save().dump(), R"({"focus":[9,0]})");
}

TEST_F(CodapoCreditTest, AStateWithoutAFocusHasNone) {
  ordered_json state{{"step", 7}, {"focus", ordered_json::array({1})}};
  for (const bool is_null : {false, true}) {
    ASSERT_TRUE(credit_.restore(state).ok());
    ordered_json older{{"step", 7}};
    if (is_null) older["focus"] = nullptr;
    ASSERT_TRUE(credit_.restore(older).ok());
    EXPECT_TRUE(credit_.focus().empty());
  }
}

TEST_F(CodapoCreditTest, RowsThatTheDataDoesNotHaveAreRefused) {
  ordered_json good;
  good["focus"] = ordered_json::array({3});
  ASSERT_TRUE(credit_.restore(good).ok());
  for (const ordered_json& row : {ordered_json(kRows), ordered_json(-1), ordered_json("1"),
                                  ordered_json(1.5), ordered_json(~std::uint64_t{0})}) {
    ordered_json wrong;
    wrong["focus"] = ordered_json::array({0, row});
    EXPECT_EQ(credit_.restore(wrong),
              runtime::invalid_argument("its \"focus\" names rows that the data does not have"))
        << row;
    EXPECT_EQ(credit_.save(), good) << "nothing has changed";
  }
}

}  // namespace
}  // namespace rl
