#include "rl/app/sample_table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rl {
namespace {

TEST(SampleTable, ShowsBothAnswersAndTheirScores) {
  const std::string table =
      sample_table({{"sort ba", "bb", "ab", 0.5}}, {{"sort ba", "ab", "ab", 1.0}});
  EXPECT_EQ(table,
            "prompt  | expected | before   | after   \n"
            "--------+----------+----------+---------\n"
            "sort ba | ab       | 0.50  bb | 1.00  ab\n");
}

TEST(SampleTable, CutsLongTextsWithoutBreakingCharacters) {
  const std::string umlauts(200, 'x');
  std::string text;
  for (int i = 0; i < 100; ++i) text += "ü";
  const std::string table = sample_table({{text + "END", "a", umlauts, 0.0}}, {}, 60);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::int64_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    EXPECT_LE(columns, 60);
  }
  EXPECT_NE(table.find("üEND"), std::string::npos);  // a prompt keeps its end
  EXPECT_NE(table.find("-"), std::string::npos);
}

TEST(SampleTable, KeepsEachSampleOnOneLine) {
  const std::string table = sample_table({{"a\nb", "c", "d\x1b[31m\u202e", 0.0}}, {});
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  EXPECT_NE(table.find("a\\nb"), std::string::npos);
  EXPECT_NE(table.find("d\\x1b[31m\\u202e"), std::string::npos) << table;
}

}  // namespace
}  // namespace rl
