// Links: point-to-point transport between the ranks of a group. Back ends implement it; every
// collective is built on it once (communicator.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/core/result.h"

namespace rl {

/// Bytes for a rank.
struct Outgoing {
  int peer = 0;
  std::span<const std::byte> bytes;
};

/// Room for the bytes of a rank.
struct Incoming {
  int peer = 0;
  std::span<std::byte> bytes;
};

/// Transfers under way. The memory that they read and write must stay until wait() has returned.
class Exchange {
 public:
  /// Waits for the end, whatever it is.
  virtual ~Exchange() = default;

  /// Returns when all has arrived and what was sent may be overwritten. Call it once.
  /// kUnavailable: a rank is gone, by its number; kDeadlineExceeded: it is late, where the links
  /// have a deadline; the status given to Links::abort.
  virtual runtime::Status wait() = 0;

  /// Whether wait() would return at once; false where that is not known.
  virtual bool is_done() const { return false; }
};

/// Ranks 0 to size() - 1, each connected to each other one. Between two ranks the parts of one
/// exchange match in their order, and the sizes of both sides must be equal. A failed exchange
/// breaks the group: make another one. One thread at a time, but for abort().
class Links {
 public:
  virtual ~Links() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Begins to send and to receive. `operation` is the same number on all ranks of one collective.
  /// Parts for and of the own rank, and empty ones, are not allowed.
  virtual std::unique_ptr<Exchange> start(std::span<const Outgoing> sent,
                                          std::span<const Incoming> received,
                                          std::uint64_t operation) = 0;

  /// Moves what can be moved without waiting, where nothing else does.
  virtual void progress() {}

  /// Ends this rank's exchanges, present and future, with `why`. Ranks that wait for this one are
  /// told that it is gone; others wait on. From any thread; the first call counts.
  virtual void abort(const runtime::Status& why) = 0;
};

}  // namespace rl
