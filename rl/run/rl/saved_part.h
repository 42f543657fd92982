// SavedPart: a part of a run whose state goes into checkpoints as its own files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// A file that a part adds to a checkpoint. `make` owns a copy of the state; the thread that writes
/// calls it.
struct StateFile {
  const char* name;
  std::function<runtime::Result<std::string>()> make;
};

/// Where a checkpoint was taken.
struct SavedAt {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
};

class SavedPart {
 public:
  virtual ~SavedPart() = default;

  virtual std::vector<StateFile> state_files() const { return {}; }

  /// Continues from the files in a checkpoint's folder.
  virtual runtime::Status restore(const std::filesystem::path& folder, const SavedAt& at) {
    return {};
  }

  /// Whether the state before a step that failed is still what a run can continue from.
  virtual bool can_repeat_step() const { return true; }
};

}  // namespace rl
