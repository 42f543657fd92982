// The tests, or with `--run SCENARIO MODEL` what they start: one scenario, whose findings are the
// last line of its output.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "scenarios.h"

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--run") {
    const nlohmann::json found = rl::testing::run_scenario(argv[2], argv[3]);
    std::printf("\n%s\n", found.dump().c_str());
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
