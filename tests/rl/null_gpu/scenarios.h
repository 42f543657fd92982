// Scenarios under the null GPU, in a separate process: LibTorch decides once a process whether it
// has CUDA, and the null GPU is preloaded.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace rl::testing {

/// "status" ("ok", or the error), and where something was counted "launches", "products", "copies"
/// and "syncs". `model` is a folder with a toy model. Unknown names: "status" says so.
nlohmann::json run_scenario(const std::string& name, const std::filesystem::path& model);

}  // namespace rl::testing
