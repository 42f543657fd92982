// Commands that run in the test's process.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rl {

/// What a command returned and wrote.
struct CommandRun {
  int code = 0;
  std::string out;
  std::string error;
};

/// The first of `arguments` is the command's name.
inline CommandRun run_here(const std::function<int(int, char**)>& command,
                           std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  CommandRun run;
  run.code = command(static_cast<int>(arguments.size()), argv.data());
  run.error = ::testing::internal::GetCapturedStderr();
  run.out = ::testing::internal::GetCapturedStdout();
  return run;
}

}  // namespace rl
