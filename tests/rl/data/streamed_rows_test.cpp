#include "rl/data/streamed_rows.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/rl/data/test_files.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using testing::TempFile;

constexpr std::int64_t kRowsOfABlock = 1024;  // of short lines

// Rows first .. end - 1; each has its number as prompt.
std::string numbered_rows(std::int64_t first, std::int64_t end) {
  std::string text;
  for (std::int64_t row = first; row < end; ++row)
    text += R"({"prompt": ")" + std::to_string(row) + "\", \"answer\": \"x\"}\n";
  return text;
}

Result<std::unique_ptr<StreamedRows>> streamed(const std::vector<std::string>& files,
                                               std::int64_t window_rows = 0) {
  return StreamedRows::open(files, {}, {}, window_rows);
}

std::int64_t number_of(StreamedRows& rows, std::int64_t index) {
  const Result<DataRow> row = rows.read(index);
  EXPECT_TRUE(row.ok()) << row.status().to_string();
  return row.ok() ? std::stoll(row->prompt.get<std::string>()) : -1;
}

TEST(StreamedRows, AreNumberedThroughAllFilesAndReadInAnyOrder) {
  const TempFile first(numbered_rows(0, 2500)), second(numbered_rows(2500, 2501)),
      third(numbered_rows(2501, 4000));
  auto rows = streamed({first.path(), second.path(), third.path()});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  EXPECT_EQ((*rows)->size(), 4000);
  const std::vector<std::vector<std::int64_t>> blocks = {
      {kRowsOfABlock, kRowsOfABlock, 2500 - 2 * kRowsOfABlock},
      {1},
      {kRowsOfABlock, 1499 - kRowsOfABlock}};
  EXPECT_EQ((*rows)->block_rows(), blocks);
  for (const std::int64_t index : {0, 1023, 1024, 2499, 2500, 2501, 3999, 0, 2500})
    EXPECT_EQ(number_of(**rows, index), index);
  const Result<DataRow> last = (*rows)->read(3999);
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE(last->where.ends_with(":1499")) << last->where;
}

TEST(StreamedRows, ABlockIsReadOnceWhileItIsHeld) {
  const TempFile file(numbered_rows(0, 3 * kRowsOfABlock));
  auto rows = streamed({file.path()});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  EXPECT_EQ((*rows)->blocks_read(), 0) << "indexed, not read";
  for (std::int64_t index = 0; index < kRowsOfABlock; ++index) (void)number_of(**rows, index);
  EXPECT_EQ((*rows)->blocks_read(), 1);
  EXPECT_EQ(number_of(**rows, kRowsOfABlock), kRowsOfABlock);
  EXPECT_EQ(number_of(**rows, 0), 0);
  EXPECT_EQ((*rows)->blocks_read(), 3) << "without a window one block is held";
  EXPECT_EQ((*rows)->rows_held_max(), kRowsOfABlock);
}

TEST(StreamedRows, TheBlockThatWasNotUsedForLongestGoes) {
  const TempFile file(numbered_rows(0, 3 * kRowsOfABlock));
  auto rows = streamed({file.path()}, /*window_rows=*/kRowsOfABlock);
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  const auto read = [&](std::int64_t block) { (void)number_of(**rows, block * kRowsOfABlock); };
  read(0);
  read(1);
  read(0);
  EXPECT_EQ((*rows)->blocks_read(), 2);
  read(2);  // in the place of block 1
  read(0);
  EXPECT_EQ((*rows)->blocks_read(), 3);
  read(1);
  EXPECT_EQ((*rows)->blocks_read(), 4);
  EXPECT_EQ((*rows)->rows_held_max(), 2 * kRowsOfABlock);
}

TEST(StreamedRows, AFileThatHasBecomeShorterIsNoticed) {
  const TempFile file(numbered_rows(0, 2 * kRowsOfABlock));
  auto rows = streamed({file.path()});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  EXPECT_EQ(number_of(**rows, 0), 0);
  std::ofstream(file.path()) << numbered_rows(0, 2 * kRowsOfABlock - 5);
  support::expect_failure((*rows)->read(kRowsOfABlock).status(), ErrorCode::kInvalidArgument,
                          {"the file has changed since training began"});
  EXPECT_EQ(number_of(**rows, 0), 0) << "what is whole can be read";
}

TEST(StreamedRows, WrongRowsAndMissingFilesAreNamed) {
  const TempFile file(numbered_rows(0, 2) + "{\"question\": \"a\"}\n");
  auto rows = streamed({file.path()});
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  EXPECT_EQ(number_of(**rows, 1), 1);
  support::expect_failure((*rows)->read(2).status(), ErrorCode::kInvalidArgument,
                          {":3", "'prompt'"});
  EXPECT_EQ(streamed({file.path(), "/none/rows.jsonl"}).status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace rl
