#include "rl/data/row_stats.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rl {
namespace {

using nlohmann::ordered_json;

ordered_json stats_of(const std::vector<const char*>& rows,
                      RowStats::CountTokens count_tokens = nullptr) {
  RowStats stats(std::move(count_tokens));
  for (const char* row : rows) stats.add(ordered_json::parse(row));
  EXPECT_EQ(stats.rows(), static_cast<std::int64_t>(rows.size()));
  return stats.to_json();
}

TEST(Spread, OfFewValuesItIsExact) {
  Spread spread;
  EXPECT_TRUE(spread.to_json().is_null());
  for (const std::int64_t value : {5, 1, 4, 2, 3}) spread.add(value);
  const ordered_json shown = spread.to_json();
  EXPECT_EQ(shown["min"], 1);
  EXPECT_EQ(shown["median"], 3);
  EXPECT_EQ(shown["p99"], 5);
  EXPECT_EQ(shown["max"], 5);
  EXPECT_EQ(shown["mean"], 3.0);
  Spread negative;
  negative.add(-3);
  EXPECT_EQ(negative.to_json()["max"], -3);
}

TEST(Spread, OfManyValuesItIsOfSomeEvenlySpread) {
  Spread rising, falling;
  constexpr std::int64_t kValues = 1'000'000;
  for (std::int64_t i = 0; i < kValues; ++i) {
    rising.add(i);
    falling.add(kValues - 1 - i);
  }
  for (const Spread* spread : {&rising, &falling}) {
    const ordered_json shown = spread->to_json();
    EXPECT_EQ(shown["min"], 0);
    EXPECT_EQ(shown["max"], kValues - 1);
    EXPECT_EQ(shown["mean"], (kValues - 1) / 2.0);
    EXPECT_NEAR(shown["p10"].get<double>(), 0.1 * kValues, 0.001 * kValues);
    EXPECT_NEAR(shown["median"].get<double>(), 0.5 * kValues, 0.001 * kValues);
    EXPECT_NEAR(shown["p99"].get<double>(), 0.99 * kValues, 0.001 * kValues);
  }
}

TEST(RowStats, ColumnsStandInTheOrderInWhichTheyCome) {
  const ordered_json stats =
      stats_of({R"({"b": "x", "a": 1})", R"({"a": null, "c": 2.5})", R"({"a": 3, "b": "yz"})"});
  EXPECT_EQ(stats["rows"], 3);
  ASSERT_EQ(stats["columns"].size(), 3u);
  const ordered_json &b = stats["columns"][0], &a = stats["columns"][1], &c = stats["columns"][2];
  EXPECT_EQ(b["name"], "b");
  EXPECT_EQ(b["type"], "text");
  EXPECT_EQ(b["missing"], 1);
  EXPECT_EQ(b["characters"]["max"], 2);
  EXPECT_EQ(b["values"], (ordered_json{{"x", 1}, {"yz", 1}}));
  EXPECT_EQ(a["name"], "a");
  EXPECT_EQ(a["missing"], 1) << "null is missing, too";
  EXPECT_FALSE(a.contains("characters"));
  EXPECT_EQ(c["missing"], 2);
  EXPECT_FALSE(stats.contains("pairs"));
}

TEST(RowStats, AColumnOfSeveralTypesIsMixedAndSaysWhy) {
  const ordered_json column = stats_of({R"({"a": 1})", R"({"a": "one"})"})["columns"][0];
  EXPECT_EQ(column["type"], "mixed");
  EXPECT_NE(column["mixed"].get<std::string>().find("'a'"), std::string::npos) << column["mixed"];
}

TEST(RowStats, OnlyFewAndShortTextsAreCountedOneByOne) {
  RowStats few, many, long_ones;
  for (int i = 0; i < 100; ++i) {
    few.add({{"a", "text " + std::to_string(i % 20)}});
    many.add({{"a", "text " + std::to_string(i % 21)}});
    long_ones.add({{"a", std::string(i == 50 ? 61 : 60, 'x')}});
  }
  EXPECT_EQ(few.to_json()["columns"][0]["values"]["text 7"], 5);
  EXPECT_FALSE(many.to_json()["columns"][0].contains("values"));
  EXPECT_FALSE(long_ones.to_json()["columns"][0].contains("values"));
}

TEST(RowStats, CharactersAreNoBytesAndTokensAsCounted) {
  const ordered_json column = stats_of({R"({"a": "é你"})"}, [](std::string_view text) {
    return static_cast<std::int64_t>(10 * text.size());
  })["columns"][0];
  EXPECT_EQ(column["characters"]["max"], 2);
  EXPECT_EQ(column["tokens"]["max"], 50);
}

TEST(RowStats, AChatIsMeasuredAsItsMessagesTogether) {
  const ordered_json columns =
      stats_of({R"({"chat": [{"role": "user", "content": "abc"}, {"from": "gpt", "value": "de"}],
           "list": ["abc", "d"], "none": []})"})["columns"];
  EXPECT_EQ(columns[0]["characters"]["max"], 5);
  EXPECT_EQ(columns[0]["elements"]["max"], 2);
  EXPECT_FALSE(columns[1].contains("characters"));
  EXPECT_EQ(columns[1]["elements"]["max"], 2);
  EXPECT_EQ(columns[2]["elements"]["max"], 0);
}

TEST(RowStats, PairsOfEqualResponsesAreCounted) {
  const ordered_json stats =
      stats_of({R"({"chosen": "a", "rejected": "b"})", R"({"chosen": "a", "rejected": "a"})",
                R"({"chosen": "a"})"});
  EXPECT_EQ(stats["pairs"], (ordered_json{{"count", 2}, {"equal", 1}}));
}

}  // namespace
}  // namespace rl
