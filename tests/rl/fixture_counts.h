// The number of reference cases that a test went through: ctest says so in the end
// (tests/print_fixture_counts.cmake).
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace rl::testing {

/// Keeps "KIND: TEXT" for ctest's last words.
inline void count_fixtures(const std::string& kind, const std::string& text) {
  const std::filesystem::path folder = STARLING_BIN_DIR "/../fixture_counts";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::ofstream(folder / kind) << text << '\n';
}

}  // namespace rl::testing
