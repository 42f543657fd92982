#include "runtime/node/cli_text.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(CliText, KeepsWhatATerminalWouldObeyFromIt) {
  EXPECT_EQ(shown("plain, \xc3\xa9\xe4\xb8\xad"), "plain, \xc3\xa9\xe4\xb8\xad");
  EXPECT_EQ(shown("\x1b[2Jgone\x7f\r"), "?[2Jgone??");
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m\xc2\xa0"),
            "?31m\xc2\xa0");
  EXPECT_EQ(shown("two\n\tlines"), "two\n\tlines");
  EXPECT_EQ(shown("two\n\tlines", /*one_line=*/true), "two??lines");
  EXPECT_EQ(shown(std::string("\0", 1)), "?");
  EXPECT_EQ(shown("ends within \xc2"), "ends within \xc2");
}

TEST(CliText, SaysWhateverItsLength) {
  ::testing::internal::CaptureStdout();
  say("%s %d\n", std::string(10'000, 'x').c_str(), 7);
  say("a\x1b%s", "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), std::string(10'000, 'x') + " 7\na?");
}

}  // namespace
}  // namespace runtime
