// LogFile: the log of one process that a node runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "runtime/core/result.h"
#include "runtime/process/log_room.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

/// Appends to a file. At `bytes_max`, or what the room says, the file becomes "<name>.1" and a
/// new one begins: a log takes at most twice that. What cannot be written is dropped, since a full
/// disk must not stop the work that is logged. A warning says so, and later a line says how much.
/// Locked (FileLock) while it is open, so that no process takes it for that of an ended process.
/// Removed at the end if nothing was written.
class LogFile final : public RoomLog {
 public:
  static constexpr std::uint64_t kBytesMax = 64ull << 20;

  /// `room` is asked as long as it is there; null: the disk is.
  explicit LogFile(std::filesystem::path file, std::uint64_t bytes_max = kBytesMax,
                   LogRoom* room = nullptr);
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  void append(std::string_view bytes);
  void leave_room() override { room_ = nullptr; }
  /// What is in it goes, and a line says how much.
  void cut() override;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t bytes() const override { return bytes_; }  // without "<name>.1"
  std::uint64_t lost_bytes() const { return lost_; }       // since it could last be written to

 private:
  Status reopen();
  void rotate();
  Status write(std::string_view bytes);
  Status write_with_gap(std::string_view bytes);
  std::filesystem::path older() const;

  const std::filesystem::path path_;
  const std::uint64_t bytes_max_;
  LogRoom* room_;
  std::uint64_t bytes_ = 0;
  std::uint64_t lost_ = 0;
  FileDescriptor fd_;
};

}  // namespace runtime
