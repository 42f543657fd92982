#include "placement/app/cli_text.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(CliText, SaysWhateverItsLength) {
  ::testing::internal::CaptureStdout();
  placement::say("%s %d\n", std::string(10'000, 'x').c_str(), 7);
  placement::say("a\x1b\u202e%s", "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            std::string(10'000, 'x') + " 7\na\\x1b\\u202e");
}

}  // namespace
}  // namespace runtime
