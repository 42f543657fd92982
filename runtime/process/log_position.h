// The number of bytes of a log before the files that are kept of it. It is in "<name>.begin" next
// to them, since neither knows what was there before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace runtime {

/// Tells a log's file from the others of that log, under whatever name. It uses the inode, and the
/// time when it was made, since inodes are used again. 0: unknown.
std::uint64_t log_file_identity(int fd);

/// The position of one of a log's files.
struct LogPosition {
  std::uint64_t bytes_before = 0;
  std::uint64_t file = 0;  // log_file_identity()
};

/// Where the file began that was the current one when a log was last rotated; nothing before that.
std::optional<LogPosition> read_log_position(const std::filesystem::path& log);
/// After "<name>" has become "<name>.1" and a new one has begun; no harm otherwise.
void note_rotation(const std::filesystem::path& log);
/// The log that such a file belongs to; empty for every other file.
std::filesystem::path log_of_position(const std::filesystem::path& file);

}  // namespace runtime
