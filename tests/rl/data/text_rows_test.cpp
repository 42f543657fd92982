// The sizes at which rows of texts are read and written. All else: row_source_test.cpp.
#include "rl/data/text_rows.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "rl/data/row_type.h"
#include "tests/rl/data/test_files.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using runtime::Result;

class TextRowsTest : public ::testing::Test {
 protected:
  static Result<std::vector<ordered_json>> read(const std::string& file, RowForm form,
                                                const RowSourceOptions& options = {}) {
    const auto source = open_text_rows(file, form, options);
    if (!source.ok()) return source.status();
    std::vector<ordered_json> rows;
    while (true) {
      auto block = (*source)->next();
      if (!block.ok()) return block.status();
      if (block->empty()) return rows;
      for (RawRow& row : *block) rows.push_back(std::move(row.value));
    }
  }
  static RowType type_of(const std::vector<ordered_json>& rows) {
    RowType type;
    for (const ordered_json& row : rows) EXPECT_TRUE(type.add(row).ok());
    return type;
  }
  void expect_comes_back(const std::vector<ordered_json>& rows, RowForm form) const {
    const std::string file = folder_.file("rows");
    const auto sink = create_text_rows(file, form, type_of(rows));
    ASSERT_TRUE(sink.ok()) << sink.status().to_string();
    for (const ordered_json& row : rows) ASSERT_TRUE((*sink)->write({row, "x"}).ok());
    ASSERT_TRUE((*sink)->commit().ok());
    const auto back = read(file, form);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_TRUE(*back == rows) << "form " << static_cast<int>(form);
  }

  static constexpr RowForm kForms[] = {RowForm::kJsonLines, RowForm::kJsonList, RowForm::kCsv,
                                       RowForm::kTsv};
  support::TemporaryFolder folder_;
};

// Longer than what is read at once, and than what the writer gathers, with ends of lines within.
TEST_F(TextRowsTest, LongRowsAreReadWhole) {
  std::string text;
  while (text.size() < 700'000) text += std::to_string(text.size()) + ",\t\"{\n]\n";
  for (const RowForm form : kForms)
    expect_comes_back({{{"a", "first"}, {"b", text}}, {{"a", text}, {"b", "last"}}}, form);
}

TEST_F(TextRowsTest, AnEmptyFieldAloneIsARow) {
  for (const RowForm form : kForms)
    expect_comes_back({{{"a", ""}}, {{"a", "x"}}, {{"a", ""}}}, form);
}

TEST_F(TextRowsTest, ARowOfTheMostBytesIsReadAndOneByteMoreIsNot) {
  const std::string row = R"({"a": ")" + std::string(100, 'x') + R"("})";
  const testing::TempFile lines("{}\n" + row + "\n{}\n");
  const auto whole =
      read(lines.path(), RowForm::kJsonLines, {.row_bytes_max = row.size(), .split = {}});
  ASSERT_TRUE(whole.ok()) << whole.status().to_string();
  EXPECT_EQ(whole->size(), 3u);
  support::expect_failure(
      read(lines.path(), RowForm::kJsonLines, {.row_bytes_max = row.size() - 1, .split = {}})
          .status(),
      ErrorCode::kInvalidArgument, {lines.path() + ":2: longer than"});
}

TEST_F(TextRowsTest, ColumnsAreNeededWhereALineNamesThem) {
  for (const RowForm form : kForms) {
    const std::string file = folder_.file("none");
    const auto sink = create_text_rows(file, form, RowType());
    if (form == RowForm::kJsonLines || form == RowForm::kJsonList)
      EXPECT_TRUE(sink.ok()) << sink.status().to_string();
    else
      support::expect_failure(sink.status(), ErrorCode::kInvalidArgument,
                              {file + ": the rows have no columns"});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "nothing was committed";
}

}  // namespace
}  // namespace rl
