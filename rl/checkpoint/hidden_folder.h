// HiddenFolder: a folder on its way to a checkpoint's name, or from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "runtime/core/result.h"
#include "runtime/process/file_lock.h"

namespace rl {

/// `<root>/.global_step_N.<8 hex digits>.tmp/`, with a lock that this object holds. The lock marks
/// the folder as ours and says that its writer lives, in whichever container or on whichever
/// machine. A resource; one thread at a time.
class HiddenFolder {
 public:
  /// Errors: as errno says, with the path. On a file system without locks it is not locked, and
  /// stays when its process is killed.
  static runtime::Result<HiddenFolder> make(const std::filesystem::path& root, std::int64_t step);

  HiddenFolder(HiddenFolder&& other) noexcept;
  HiddenFolder& operator=(HiddenFolder&&) = delete;
  ~HiddenFolder() { remove(); }

  /// Removes it, with what is in it by now.
  void remove();

  /// A folder in it, empty at first: what is moved to another name, or from one to here.
  std::filesystem::path content() const { return path_ / "checkpoint"; }

 private:
  explicit HiddenFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty once removed or moved from
  runtime::FileLock lock_;
};

/// A new name for one, should it have to do without a lock: on a full disk none can be made.
std::filesystem::path hidden_name(const std::filesystem::path& root, std::int64_t step);

/// Removes those below `root` whose writers have ended before they could: this user's, with a lock
/// in them that no process holds.
void remove_dead_hidden_folders(const std::filesystem::path& root);

}  // namespace rl
