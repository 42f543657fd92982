#include "runtime/core/log.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/terminal.h"

namespace runtime {
namespace {

// What commands print for programs stays theirs. In its own process: only the first message of
// one finds no log.
TEST(LogDeathTest, WithoutAStartGoesToStderr) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto speak = [] {
    if (std::freopen("/dev/full", "w", stdout) == nullptr) std::_Exit(2);
    LOG(warn, "a function printed");
    std::_Exit(std::fflush(stdout) == 0 ? 0 : 3);
  };
  EXPECT_EXIT(speak(), ::testing::ExitedWithCode(0), "W starling: a function printed");
}

TEST(Log, NamesTheRoleInEveryLine) {
  auto before = spdlog::default_logger();
  ::testing::internal::CaptureStderr();
  start_log("node 7f3a 100%");
  LOG(info, "joined {}", 5);
  LOG(debug, "hidden");
  spdlog::default_logger()->flush();
  std::string text = ::testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  // "2026-01-31 12:00:00.123", then level, role and message; one line only.
  constexpr std::size_t kStampChars = 23;
  ASSERT_GT(text.size(), kStampChars) << text;
  EXPECT_EQ(text.substr(kStampChars), " I node 7f3a 100%: joined 5\n");
  EXPECT_EQ(text.substr(0, kStampChars).find_first_not_of("0123456789-:. "), std::string::npos)
      << text;
}

// A message may have text of a model or a reward.
TEST(Log, ATerminalGetsEscapesAndAFileGetsBytes) {
  auto before = spdlog::default_logger();
  const std::string foreign = "reward: \x1b[2J\u202e\xff";
  std::string on_terminal;
  {
    Terminal terminal(2);
    start_log("worker");
    LOG(warn, "{}", foreign);
    on_terminal = terminal.shown();
  }
  ::testing::internal::CaptureStderr();
  LOG(warn, "{}", foreign);
  const std::string in_file = ::testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  EXPECT_TRUE(on_terminal.ends_with(" W worker: reward: \\x1b[2J\\u202e\\xff\n")) << on_terminal;
  EXPECT_TRUE(in_file.ends_with(" W worker: " + foreign + "\n")) << in_file;
}

TEST(Log, WritesJsonWhenAskedTo) {
  auto before = spdlog::default_logger();
  ::setenv("STARLING_LOG_FORMAT", "json", 1);
  ::testing::internal::CaptureStderr();
  start_log("node 7f3a");
  LOG(warn, "a \"quote\", a \\ and\na line");
  spdlog::default_logger()->flush();
  const std::string text = ::testing::internal::GetCapturedStderr();
  ::unsetenv("STARLING_LOG_FORMAT");
  spdlog::set_default_logger(before);
  ASSERT_TRUE(text.ends_with("}\n")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_NE(text.find(R"("level":"warning","role":"node 7f3a","pid":)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("text":"a \"quote\", a \\ and\u000aa line"})"), std::string::npos) << text;
}

TEST(Log, JsonHasNothingThatATerminalObeys) {
  auto before = spdlog::default_logger();
  ::setenv("STARLING_LOG_FORMAT", "json", 1);
  std::string on_terminal;
  {
    Terminal terminal(2);
    start_log("worker");
    LOG(warn, "reward: \x1b[2J\u009b31m \u202e \x9b \u00e9");
    on_terminal = terminal.shown();
  }
  ::unsetenv("STARLING_LOG_FORMAT");
  spdlog::set_default_logger(before);
  EXPECT_NE(on_terminal.find("reward: \\u001b[2J\\u009b31m \\u202e \\ufffd \u00e9\"}"),
            std::string::npos)
      << on_terminal;
}

TEST(Log, TakesItsLevelFromTheEnvironment) {
  auto before = spdlog::default_logger();
  ::setenv("STARLING_LOG", "error", 1);
  start_log("x");
  EXPECT_EQ(spdlog::default_logger()->level(), spdlog::level::err);
  ::unsetenv("STARLING_LOG");
  spdlog::set_default_logger(before);
}

}  // namespace
}  // namespace runtime
