// FolderLock: the lock by which one run at a time writes to a folder.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/result.h"
#include "runtime/transport/file_descriptor.h"

namespace rl {

/// Holds `folder`/.lock until destroyed or until the process ends, however it ends. A resource.
class FolderLock {
 public:
  FolderLock() = default;

  /// Makes the folder if need be. `key` says which setting it is. Errors: kUnavailable: another
  /// process holds it (named by its pid), or this one does; those of making the folder and file.
  static runtime::Result<FolderLock> acquire(const std::filesystem::path& folder,
                                             const std::string& key = "trainer.default_local_dir");

 private:
  explicit FolderLock(runtime::FileDescriptor file) : file_(std::move(file)) {}

  runtime::FileDescriptor file_;
};

}  // namespace rl
