// The place of the tokenizer tests' files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rl::testing {

inline std::filesystem::path tokenizer_fixtures() {
  const char* folder = std::getenv("STARLING_FIXTURES");
  return folder != nullptr ? folder : STARLING_SOURCE_DIR "/tests/fixtures";
}

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace rl::testing
