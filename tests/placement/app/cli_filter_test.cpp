#include "placement/app/cli_filter.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace placement {
namespace {

using runtime::ErrorCode;
using support::expect_failure;

const nlohmann::ordered_json& shown_node() {
  static const nlohmann::ordered_json node{
      {"id", "7f3a0011"}, {"address", "10.0.0.2:7000"},          {"is_head", true},
      {"pid", 12},        {"labels", {{"zone", "a"}, {"b", 1}}}, {"gpus", {0, 1}}};
  return node;
}

bool fits(const std::string& line) {
  const auto filters = parse_filters({line});
  EXPECT_TRUE(filters.ok()) << filters.status().to_string();
  return filters.ok() && matches(shown_node(), *filters);
}

TEST(CliFilter, AFilterEndsAtItsFirstEqualsSign) {
  const auto filters = parse_filters({"name=a=b", "state="});
  ASSERT_TRUE(filters.ok()) << filters.status().to_string();
  EXPECT_EQ(*filters, (Filters{{"name", "a=b"}, {"state", ""}}));
  for (const char* line : {"name", "=a", ""})
    expect_failure(parse_filters({line}).status(), ErrorCode::kInvalidArgument,
                   {"--filter " + std::string(line), "FIELD=VALUE"});
}

TEST(CliFilter, FirstDigitsAreEnoughForIdsAlone) {
  EXPECT_TRUE(fits("id=7f3a"));
  EXPECT_FALSE(fits("id=f3a"));
  EXPECT_FALSE(fits("id=")) << "a script whose variable is empty means no node";
  EXPECT_TRUE(fits("address=10.0.0.2:7000"));
  EXPECT_FALSE(fits("address=10.0.0.2"));
}

TEST(CliFilter, ComparesValuesAsTheyAreShown) {
  EXPECT_TRUE(fits("is_head=true"));
  EXPECT_TRUE(fits("pid=12"));
  EXPECT_FALSE(fits("pid=1"));
  EXPECT_TRUE(fits("labels.zone=a"));
  EXPECT_TRUE(fits("labels.b=1"));
  EXPECT_FALSE(fits("labels.rack=a"));
  EXPECT_FALSE(fits("drain=x")) << "a field that only some have";
}

TEST(CliFilter, AllHaveToHold) {
  EXPECT_TRUE(matches(shown_node(), {}));
  EXPECT_TRUE(matches(shown_node(), {{"id", "7f"}, {"pid", "12"}}));
  EXPECT_FALSE(matches(shown_node(), {{"id", "7f"}, {"pid", "13"}}));
}

TEST(CliFilter, NamesTheFieldsThatThereAre) {
  EXPECT_TRUE(check_filters({{"id", "7"}, {"labels.any", "x"}}, shown_node(), "nodes").ok());
  for (const char* field : {"colour", "labels", "id.x", "gpus", "gpus.0"})
    expect_failure(check_filters({{"id", "7"}, {field, "x"}}, shown_node(), "nodes"),
                   ErrorCode::kInvalidArgument,
                   {"nodes have no field '" + std::string(field) + "'",
                    "there are id, address, is_head, pid, labels.NAME"});
}

}  // namespace
}  // namespace placement
