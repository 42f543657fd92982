#include "rl/app/command_line.h"

#include <gtest/gtest.h>

#include "tests/support/terminal.h"

namespace rl {
namespace {

// What failed may be a model's or a reward's: its text is in the message.
TEST(CommandLine, AFailureOnATerminalHasEscapes) {
  const auto why = runtime::invalid_argument("reward: \x1b]0;x\x07\u202e");
  std::string shown;
  {
    Terminal terminal(2);
    EXPECT_EQ(fail(why), 1);
    shown = terminal.shown();
  }
  EXPECT_EQ(shown, "error: reward: \\x1b]0;x\\x07\\u202e\n");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(fail(why), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "error: " + why.message() + "\n");
}

}  // namespace
}  // namespace rl
