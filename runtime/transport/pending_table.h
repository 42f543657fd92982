// PendingTable: the requests that wait for their reply. Slots are reused and carry a generation. So
// finding, adding and removing take constant time without hashing, and a late reply never meets a
// newer request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/transport/event_loop.h"
#include "runtime/transport/frame_reader.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

class PendingTable {
 public:
  struct Entry {
    UniqueFunction<void(Result<Message>)> reply;
    Deadline deadline;
    PayloadTarget target;
  };

  /// Returns the request's id, never 0.
  std::uint64_t add(Entry entry);
  /// Removes and returns the request; nothing if it is unknown or was answered.
  std::optional<Entry> take(std::uint64_t id);
  /// Borrowed until the next change; null if unknown.
  Entry* find(std::uint64_t id);
  std::size_t size() const { return size_; }

  /// Removes those whose deadline is not after `now`; `*next` becomes the earliest deadline left,
  /// or Deadline::max(). Cost: linear in the number of slots.
  std::vector<Entry> take_expired(Deadline now, Deadline* next);
  std::vector<Entry> take_all();

 private:
  struct Slot {
    std::uint32_t generation = 1;
    std::optional<Entry> entry;
  };
  Entry take_slot(std::size_t index);

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
};

}  // namespace runtime
