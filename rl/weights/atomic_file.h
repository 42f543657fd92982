// AtomicFile: a file that readers see whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "rl/weights/block_writer.h"
#include "runtime/core/result.h"
#include "runtime/core/status.h"

namespace rl {

/// Writes to a temporary file next to `path` (or next to what it links to), which commit() syncs
/// and renames over it. It is locked (flock) meanwhile: others see that its writer lives. Destroyed
/// before that, the temporary file is removed and an old file at `path`
/// stays as it was. Not thread-safe. Files known to be large go past the page cache, by a
/// BlockWriter, where the file system can. A checkpoint's pages would be fresh memory, which costs
/// more than the disk, and push out what is read again.
class AtomicFile {
 public:
  /// `bytes_expected`, when known, reserves the space, so that a full disk is an error now rather
  /// than after a long write. Errors: kNotFound (no such folder), kResourceExhausted (disk full,
  /// quota), kInvalidArgument (no permission, a device or a pipe, ...).
  static runtime::Result<AtomicFile> create(const std::filesystem::path& path,
                                            std::uint64_t bytes_expected = 0);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Appends all the bytes. Errors as create; also the file-size limit of the process
  /// (kResourceExhausted). May keep them back until commit(), which then has these errors.
  runtime::Status write(std::span<const std::byte> bytes);
  runtime::Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

  /// Syncs the file, renames it into place and syncs the folder. Call once, last.
  runtime::Status commit();

 private:
  AtomicFile(std::filesystem::path path, std::filesystem::path temporary, int fd);
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once committed or moved from
  int fd_ = -1;
  int direct_fd_ = -1;                   // of a large file, past the page cache
  std::uint64_t bytes_ = 0;              // written so far
  std::unique_ptr<BlockWriter> blocks_;  // of a large file; null otherwise
};

/// "PATH: cannot be written: No space left on device", for an errno.
runtime::Status write_error(int error, const std::filesystem::path& path);

/// Removes the temporary files in `folder` whose writers were killed: this user's, by the names
/// that AtomicFile gives them, which no process has locked. No others, whatever their names.
void remove_dead_temporaries(const std::filesystem::path& folder);

/// The whole of a small file at once: a config.json, say. A device or a pipe (/dev/stdout) takes it
/// as it comes.
runtime::Status write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace rl
