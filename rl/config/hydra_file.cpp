#include "rl/config/hydra_file.h"

#include <algorithm>
#include <iterator>

namespace rl {
namespace {

namespace fs = std::filesystem;

// The files next to verl's trainers.
constexpr const char* kOfVerl[] = {
    "ppo_trainer",           "ppo_megatron_trainer",       "dapo_trainer",
    "dapo_megatron_trainer", "transfer_queue_ppo_trainer", "sft_trainer",
    "sft_trainer_engine"};

}  // namespace

runtime::Result<std::optional<fs::path>> find_config_file(const ConfigFileOptions& options) {
  const bool of_hydra = !options.hydra_path.empty() || !options.hydra_name.empty();
  if (!options.file.empty()) {
    if (of_hydra)
      return runtime::invalid_argument(
          "--config names the file by itself: leave out --config-path and --config-name");
    return std::optional<fs::path>(options.file);
  }
  if (!of_hydra) return std::optional<fs::path>();
  fs::path name = options.hydra_name.empty() ? "ppo_trainer" : options.hydra_name;
  if (name.extension() != ".yaml") name += ".yaml";
  const fs::path file = fs::path(options.hydra_path) / name;
  std::error_code ignored;
  if (!options.hydra_path.empty() && fs::exists(file, ignored))
    return std::optional<fs::path>(file);
  const bool of_verl = std::any_of(std::begin(kOfVerl), std::end(kOfVerl),
                                   [&](const char* own) { return name.stem() == own; });
  if (of_verl) return std::optional<fs::path>();
  return runtime::not_found("--config-name=" + options.hydra_name + ": no file " + file.string() +
                            "; --config FILE takes one from anywhere");
}

}  // namespace rl
