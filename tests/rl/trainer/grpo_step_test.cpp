// A GRPO step of a real model, computed again in plain torch where a Python with it is at hand.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/rl/cached_smollm2.h"

namespace rl {
namespace {

TEST(GrpoStep, EqualsPlainTorchWithoutPaddingIdx) {
  const auto gguf = testing::cached_smollm2();
  if (gguf.empty())
    GTEST_SKIP() << "SmolLM2 is not in the cache: .ci/fetch_wheels.sh model fetches it";
  const char* python = std::getenv("STARLING_PYTHON");  // one with torch and transformers
  const std::string command =
      (python != nullptr ? python : "python3") +
      std::string(" " STARLING_SOURCE_DIR "/tests/rl/trainer/check_grpo_step.py " STARLING_BIN_DIR
                  "/starling-rl ") +
      gguf.string();
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  constexpr int kSkipped = 77;
  if (WEXITSTATUS(status) == kSkipped || WEXITSTATUS(status) == 127)
    GTEST_SKIP() << "needs torch and transformers: set STARLING_PYTHON to a python that has them";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace rl
