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

#include "tests/rl/cached_smollm2.h"

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

/// The file of cached_smollm2().
inline std::optional<std::filesystem::path> smollm2_gguf() {
  const std::filesystem::path file = cached_smollm2();
  return file.empty() ? std::nullopt : std::optional(file);
}

}  // namespace rl::testing
