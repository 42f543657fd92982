// FileCache: a folder of files that can be had again, within what its disk has for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

struct FileCacheOptions {
  std::filesystem::path folder;
  int depth = 1;                          // of its files: 2 for those in folders of it
  std::uint64_t bytes_max = 10ull << 30;  // if half of what the disk has for it is more
  /// Caches that give way, too, where this one has nothing left to remove.
  std::vector<std::filesystem::path> others = {};
};

/// A file is in use while a process has it locked (FileLock, shared or not). What is not in use may
/// be removed at any time, also by other nodes of this machine: those used longest ago first. A
/// file is counted or removed only if its folder has a cache's mark. Its name, or that of the
/// folder that it is in, must also be a hash. A value; any thread.
class FileCache {
 public:
  /// Of a file that is not to be removed though it is not locked.
  using Keeps = std::function<bool(const std::filesystem::path&)>;

  explicit FileCache(FileCacheOptions options) : options_(std::move(options)) {}

  const std::filesystem::path& folder() const { return options_.folder; }

  /// Makes the folder. Errors: as make_cache_folder(), those of with_room().
  Status make() const;
  /// Errors: as make_cache_folder() has them for what is there; none where nothing is.
  Status check() const;
  /// Begins a file next to `file` that is to take its place. It is locked, so that only what a dead
  /// node has left is taken for that. Makes room. Errors: kResourceExhausted (the disk is full),
  /// what opening can say.
  Result<FileDescriptor> begin(const std::filesystem::path& part, unsigned mode,
                               const Keeps& keeps = {}) const;
  /// A name for begin().
  static std::filesystem::path part_of(const std::filesystem::path& file);
  /// Appends to a file that was begun. `bytes_to_come`: how many more there will be. Errors: those
  /// of with_room().
  Status write(int fd, std::string_view bytes, std::uint64_t bytes_to_come,
               const std::filesystem::path& part, const Keeps& keeps = {}) const;
  /// Does the work, again each time that it failed for a full disk and files were removed for it.
  /// Errors: those of the work; kResourceExhausted names the disk and the cure when nothing is left
  /// to remove.
  Status with_room(std::uint64_t bytes, const Keeps& keeps,
                   const std::function<Status()>& work) const;
  /// Removes what dead nodes have begun, and the files beyond `bytes_max`, or beyond half of what
  /// the disk has.
  void trim(const Keeps& keeps = {}) const;

 private:
  std::uint64_t give_way(std::uint64_t bytes, const Keeps& keeps) const;

  FileCacheOptions options_;
};

}  // namespace runtime
