#include "runtime/core/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

namespace runtime {
namespace {

TEST(Log, NamesTheRoleInEveryLine) {
  auto before = spdlog::default_logger();
  testing::internal::CaptureStderr();
  start_log("node 7f3a 100%");
  LOG(info, "joined {}", 5);
  LOG(debug, "hidden");
  spdlog::default_logger()->flush();
  std::string text = testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  EXPECT_TRUE(std::regex_match(text, std::regex("\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{3} I node 7f3a 100%: joined 5\n"))) << text;
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
