#include "rl/app/checkpoint_folder.h"

#include <initializer_list>

#include "rl/checkpoint/checkpoint.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> folder_with(const char* file, const fs::path& checkpoint,
                                    std::initializer_list<const char*> places) {
  std::error_code ignored;
  for (const char* place : places) {
    const fs::path folder = *place == '\0' ? checkpoint : checkpoint / place;
    if (fs::exists(folder / file, ignored)) return folder.lexically_normal();
  }
  return std::nullopt;
}

}  // namespace

runtime::Result<fs::path> find_checkpoint(const fs::path& checkpoint) {
  std::error_code ignored;
  if (!fs::is_directory(checkpoint, ignored))
    return runtime::not_found(checkpoint.string() + ": no such folder");
  fs::path folder = checkpoint;
  if (!checkpoint_step(fs::absolute(folder, ignored).lexically_normal())) {
    const runtime::Result<std::optional<fs::path>> latest = latest_whole_checkpoint(folder);
    if (!latest.ok()) return latest.status();
    if (*latest) folder = **latest;
  }
  if (fs::exists(folder / "manifest.json", ignored)) {
    if (runtime::Status status = verify_checkpoint(folder); !status.ok()) return status;
  }
  return folder;
}

std::optional<fs::path> model_in_checkpoint(const fs::path& checkpoint) {
  return folder_with("config.json", checkpoint,
                     {"actor/huggingface", "huggingface", "actor", "model", ""});
}

std::optional<fs::path> adapter_in_checkpoint(const fs::path& checkpoint) {
  return folder_with("adapter_config.json", checkpoint, {"actor/lora_adapter", "lora_adapter", ""});
}

}  // namespace rl
