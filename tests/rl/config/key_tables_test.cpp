#include "rl/config/key_tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "rl/config/keys.h"
#include "rl/config/stage_keys.h"

namespace rl {
namespace {

std::string read(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(KeyTables, TheGuideHasThem) {
  const std::string page = read(STARLING_SOURCE_DIR "/docs/guide/verl.md");
  EXPECT_NE(page.find(tables_begin() + "\n" + key_tables() + kTablesEnd), std::string::npos)
      << "the table of keys has changed: starling train --write-tables docs/guide/verl.md";
}

TEST(KeyTables, TheGuideHasThoseOfTheStages) {
  const std::string page = read(STARLING_SOURCE_DIR "/docs/guide/stages.md");
  EXPECT_NE(page.find(tables_begin(sft_keys()) + "\n" + key_tables(sft_keys()) + kTablesEnd),
            std::string::npos)
      << "the table of keys has changed: starling sft --write-tables docs/guide/stages.md";
}

TEST(KeyTables, NameEveryKey) {
  const std::string tables = std::regex_replace(key_tables(), std::regex("\n *"), " ");
  for (const KeyInfo& row : known_keys()) {
    const std::string_view last = row.key.substr(row.key.rfind('.') + 1);
    const std::string_view name = row.support == KeySupport::kNoEffect ? last : row.key;
    EXPECT_NE(tables.find("`" + std::string(name) + "`"), std::string::npos) << row.key;
    EXPECT_NE(tables.find(row.note.substr(0, row.note.find('|'))), std::string::npos) << row.key;
  }
}

TEST(KeyTables, HaveLinesOfAHundredColumnsOutsideOfTables) {
  std::istringstream lines(key_tables() + key_tables(sft_keys()));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("|")) continue;
    EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(KeyTables, GoBetweenTheMarks) {
  const std::filesystem::path page =
      std::filesystem::temp_directory_path() / ("starling_tables_" + std::to_string(getpid()));
  std::ofstream(page) << "before\n" << tables_begin() << "old\n" << kTablesEnd << "after\n";
  ASSERT_TRUE(write_key_tables(page).ok());
  const std::string text = read(page);
  EXPECT_EQ(text, std::string("before\n") + tables_begin() + "\n" + key_tables() + kTablesEnd +
                      "after\n");
  ASSERT_TRUE(write_key_tables(page).ok());
  EXPECT_EQ(read(page), text);
  std::ofstream(page) << "no marks";
  EXPECT_FALSE(write_key_tables(page).ok());
  std::filesystem::remove(page);
}

}  // namespace
}  // namespace rl
