// LogRoom: the room that several logs share, as each log and what bounds them see each other.
#pragma once

#include <cstdint>

namespace runtime {

/// A log that shares a room.
class RoomLog {
 public:
  virtual std::uint64_t bytes() const = 0;
  /// Begins again, for room.
  virtual void cut() = 0;
  /// The room ends first: it is not asked any more.
  virtual void leave_room() = 0;

 protected:
  ~RoomLog() = default;
};

/// Bounds what its logs take together. It and they live on the event loop.
class LogRoom {
 public:
  /// Whether a log may be written to with this number of bytes. Makes room first; may call cut() of
  /// any log.
  virtual bool admit(std::uint64_t bytes) = 0;
  /// A log that has as much begins again.
  virtual std::uint64_t file_bytes_max() const = 0;
  /// From add() to remove(), or to leave_room(), the log is one of those that may be cut.
  virtual void add(RoomLog& log) = 0;
  virtual void remove(RoomLog& log) = 0;

 protected:
  ~LogRoom() = default;
};

}  // namespace runtime
