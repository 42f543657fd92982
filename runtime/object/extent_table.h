// ExtentTable: which ranges of the segment are leased to whom, and who pins them. Plain bookkeeping without I/O.
//
// Invariant: a range is in exactly one place: an extent, the retained set (free, its pages still there), or the clean set (free, without pages).
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "runtime/core/result.h"
#include "runtime/object/range_set.h"

namespace runtime {

/// A range leased under a number that is never used again.
struct Extent {
  std::uint64_t id = 0;
  ByteRange range;
};

class ExtentTable {
 public:
  /// Stands for one connection, or for the store itself.
  using Client = std::uint64_t;

  explicit ExtentTable(std::uint64_t capacity_bytes);

  /// Leases whole pages, those that already have memory first. Nothing when no free range is long enough.
  std::optional<Extent> lease(std::uint64_t bytes, Client holder);
  /// The holder is done with it; it is free once nobody pins it. False when the client does not hold it.
  bool give_back(std::uint64_t extent, Client holder);

  /// Nothing when the extent is gone.
  std::optional<Extent> pin(std::uint64_t extent, Client client);
  /// Undoes one pin. False when the client has none on it.
  bool unpin(std::uint64_t extent, Client client);
  std::optional<Extent> find(std::uint64_t extent) const;
  std::uint64_t pins_of(std::uint64_t extent) const;

  /// Ends everything that a client holds and pins.
  void drop(Client client);

  /// Takes up to `bytes` of free ranges whose pages should go back to the system; give them to discarded() afterwards.
  std::optional<ByteRange> take_retained(std::uint64_t bytes) { return retained_.take_last(bytes); }
  void discarded(ByteRange range) { clean_.add(range); }

  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  std::uint64_t leased_bytes() const { return leased_bytes_; }
  std::uint64_t orphaned_bytes() const { return orphaned_bytes_; }
  std::uint64_t retained_bytes() const { return retained_.bytes(); }
  std::uint64_t pins() const { return pins_; }

 private:
  struct Entry {
    ByteRange range;
    Client holder = 0;  // 0: given back
    std::uint64_t pins = 0;
  };
  struct Holdings {
    std::unordered_map<std::uint64_t, std::uint64_t> pins;  // extent -> count
    std::unordered_set<std::uint64_t> leases;
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;
  void orphan(Entries::iterator entry);
  void release_if_free(Entries::iterator entry);

  const std::uint64_t capacity_bytes_;
  RangeSet clean_;
  RangeSet retained_;
  Entries entries_;
  std::unordered_map<Client, Holdings> clients_;
  std::uint64_t last_id_ = 0;
  std::uint64_t leased_bytes_ = 0;
  std::uint64_t orphaned_bytes_ = 0;
  std::uint64_t pins_ = 0;
};

}  // namespace runtime
