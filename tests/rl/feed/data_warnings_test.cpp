#include "rl/feed/data_warnings.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

Dataset rows(const std::vector<std::string>& places) {
  std::vector<DataRow> all;
  for (const std::string& where : places) {
    DataRow row;
    row.prompt = "a text";
    row.where = where;
    row.answerless = "'prompt'";
    all.push_back(row);
  }
  return Dataset(std::move(all));
}

TEST(DataWarnings, AreOnceAFile) {
  const Dataset data = rows({"a.jsonl:3", "a.jsonl:4", "b.parquet: row 2", "b.parquet: row 3"});
  const auto all = data_warnings(data, {.answers = true, .templates = true});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].find("a.jsonl:3: no answer: it has 'prompt', and no value in any of"), 0u)
      << all[0];
  EXPECT_EQ(all[1].find("b.parquet: row 2: no answer"), 0u) << all[1];
  EXPECT_EQ(all[2].find("a.jsonl:3: the prompt is plain text"), 0u) << all[2];
  EXPECT_EQ(all[3].find("b.parquet: row 2: the prompt"), 0u) << all[3];
  EXPECT_EQ(data_warnings(data, {.answers = true}).size(), 2u);
  EXPECT_TRUE(data_warnings(data, {}).empty());
}

TEST(DataWarnings, OfManyFilesSomeAreNamed) {
  std::vector<std::string> places;
  for (int i = 0; i < 20; ++i) places.push_back("part-" + std::to_string(i) + ".jsonl:1");
  const auto all = data_warnings(rows(places), {.templates = true});
  ASSERT_EQ(all.size(), 8u);
  EXPECT_TRUE(all.back().ends_with("; and so it is in 12 more files")) << all.back();
}

TEST(DataWarnings, ColumnsThatNoPromptGetsAreNamedOnceAFile) {
  std::vector<DataRow> all = rows({"a.jsonl:3", "a.jsonl:4", "b.jsonl:1"}).rows();
  for (DataRow& row : all) row.unread = "'tools'";
  const auto warnings = data_warnings(Dataset(std::move(all)), {});
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(warnings[0].starts_with("a.jsonl:3: it has 'tools', which the prompt does not get"))
      << warnings[0];
}

TEST(DataWarnings, OfFieldsThatTheTemplateLeavesOutTheFirstRowIsNamed) {
  const auto all = unwritten_fields(rows({"a.jsonl:3", "a.jsonl:4"}), [](const DataRow& row) {
    return UnwrittenFields{{"tool_calls", row.where}};
  });
  EXPECT_EQ(all, std::vector<std::string>{"a.jsonl:3"});
}

}  // namespace
}  // namespace rl
