// RoomLine: the queue of allocations that wait for memory in a full store. Private to
// runtime/store; lives on the event loop.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "runtime/core/asio.h"
#include "runtime/core/timer.h"
#include "runtime/store/extent_table.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/unique_function.h"

namespace runtime::object_detail {

/// The first in line is served first, also when a later one needs less. So small objects do not
/// keep a large one waiting for ever.
class RoomLine : public std::enable_shared_from_this<RoomLine> {
 public:
  using Attempt = UniqueFunction<bool()>;  // takes the room; false when there is too little
  using GiveUp = UniqueFunction<void()>;   // the time was up

  explicit RoomLine(EventLoop& loop) : timer_(loop.context()) {}

  /// Ends in one of: `attempt` returned true (maybe before this returns), `give_up` was called, or
  /// `client` was dropped.
  void wait(std::uint64_t bytes, ExtentTable::Client client, Deadline deadline, Attempt attempt,
            GiveUp give_up);
  /// Room may have come.
  void serve();
  /// The client is gone.
  void drop(ExtentTable::Client client);
  /// Gives up all.
  void stop();

  bool empty() const { return line_.empty(); }
  std::uint64_t wanted_bytes() const { return wanted_bytes_; }

 private:
  struct Waiter {
    std::uint64_t bytes;
    ExtentTable::Client client;
    Deadline deadline;
    Attempt attempt;
    GiveUp give_up;
  };
  void expire();
  void arm();

  Timer timer_;
  std::deque<Waiter> line_;
  std::uint64_t wanted_bytes_ = 0;
  bool serving_ = false;
};

}  // namespace runtime::object_detail
