#include "rl/feed/shown_row.h"

#include <gtest/gtest.h>

#include <string>

namespace rl {
namespace {

TEST(ShownRow, EveryLineIsMarked) {
  EXPECT_EQ(shown_lines("", '|'), "");
  EXPECT_EQ(shown_lines("a", '+'), "  + a\n");
  EXPECT_EQ(shown_lines("a\n\nb\n", '|'), "  | a\n  | \n  | b\n");
}

TEST(ShownRow, FortyLinesAreShownAndOneMoreIsCut) {
  std::string text, shown;
  for (int line = 1; line <= 40; ++line) {
    text += (line > 1 ? "\n" : "") + std::to_string(line);
    shown += "  | " + std::to_string(line) + "\n";
  }
  EXPECT_EQ(shown_lines(text, '|'), shown);
  EXPECT_EQ(shown_lines(text + "\n", '|'), shown) << "no line begins behind the last";
  EXPECT_EQ(shown_lines(text + "\n41", '|'), shown + "  | ...\n");
  EXPECT_EQ(shown_lines(text + "\n\n42\n", '|'), shown + "  | ...\n");
}

// A prompt is not trusted: it moves no cursor and fills no screen.
TEST(ShownRow, ALineHasFiveHundredBytesWithoutControlCharacters) {
  EXPECT_EQ(shown_lines(std::string(500, 'x'), '|'), "  | " + std::string(500, 'x') + "\n");
  EXPECT_EQ(shown_lines(std::string(501, 'x') + "\ny", '|'),
            "  | " + std::string(500, 'x') + "\n  | y\n");
  EXPECT_EQ(shown_lines("a\x1b[2J\r", '|'), "  | a\\u001b[2J\\r\n");
}

}  // namespace
}  // namespace rl
