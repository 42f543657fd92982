// ExtentTable: the leased ranges of the segment, with their holders and pins. Plain bookkeeping
// without I/O.
//
// Invariant: A range is in exactly one place:
// - an extent,
// - the retained set (free, its pages still there),
// - the clean set (free, without pages),
// - or taken by take() for an extent that is about to move in.
// An extent that was vacated has no range until it is settled again: its bytes are elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/store/range_set.h"

namespace runtime {

/// A range leased under a number that is never used again.
struct Extent {
  std::uint64_t id = 0;
  ByteRange range;         // where it is now
  std::uint64_t home = 0;  // where it began when it was leased, which is what locations of objects
                           // in it are relative to
};

class ExtentTable {
 public:
  /// Stands for one connection, or for the store itself.
  using Client = std::uint64_t;

  explicit ExtentTable(std::uint64_t capacity_bytes);

  /// Leases whole pages, those that already have memory first. Nothing when no free range is long
  /// enough.
  std::optional<Extent> lease(std::uint64_t bytes, Client holder);
  /// The holder is done with it; it is free once no client pins it. False when the client does not
  /// hold it.
  bool give_back(std::uint64_t extent, Client holder);

  /// Nothing when the extent is gone.
  std::optional<Extent> pin(std::uint64_t extent, Client client);
  /// Undoes one pin. False when the client has none on it.
  bool unpin(std::uint64_t extent, Client client);
  std::optional<Extent> find(std::uint64_t extent) const;
  std::uint64_t pins_of(std::uint64_t extent) const;

  /// The store keeps it in its own name, whatever becomes of its holder: it may be vacated, and
  /// ends with unkeep(). Counted. False when it is gone.
  bool keep(std::uint64_t extent);
  /// Undoes one keep(). False when there is none.
  bool unkeep(std::uint64_t extent);

  /// Ends everything that a client holds and pins.
  void drop(Client client);
  /// Who leased it and has not given it back: 0 when there is none.
  Client holder_of(std::uint64_t extent) const;
  std::vector<std::uint64_t> leases_of(Client client) const;

  /// Other nodes have copied from it: take_ended_shared() will name it when it ends.
  void mark_shared(std::uint64_t extent);
  std::vector<std::uint64_t> take_ended_shared() { return std::exchange(ended_shared_, {}); }

  // -- Moving out and in.

  /// The holder touches it no more without pinning it, so that it may be vacated. False when the
  /// client does not hold it.
  bool surrender(std::uint64_t extent, Client holder);
  /// Surrendered extents that no client pins, those used longest ago first, up to `bytes` in all
  /// (at least one if there is one).
  std::vector<Extent> vacatable(std::uint64_t bytes) const;
  /// The bytes are elsewhere: its range is free. It must be vacatable.
  void vacate(std::uint64_t extent);
  /// Takes a free range; nothing when none is long enough.
  std::optional<ByteRange> take(std::uint64_t bytes);
  /// Moves a vacated extent into a taken range of its size. False when it has ended meanwhile; the
  /// range is free again then.
  bool settle(std::uint64_t extent, ByteRange range);
  /// A taken range that was not needed.
  void put_back(ByteRange range) { retained_.add(range); }
  bool is_resident(std::uint64_t extent) const;
  /// Vacated extents that ended since the last call: what is kept of them elsewhere can go.
  std::vector<std::uint64_t> take_ended() { return std::exchange(ended_, {}); }

  /// Takes up to `bytes` of free ranges whose pages should go back to the system; give them to
  /// discarded() afterwards.
  std::optional<ByteRange> take_retained(std::uint64_t bytes) { return retained_.take_last(bytes); }
  void discarded(ByteRange range) { clean_.add(range); }

  std::uint64_t capacity_bytes() const { return capacity_bytes_; }
  std::uint64_t leased_bytes() const { return leased_bytes_; }
  std::uint64_t orphaned_bytes() const { return orphaned_bytes_; }
  std::uint64_t kept_bytes() const { return kept_bytes_; }
  /// Of the segment, by whomever.
  std::uint64_t used_bytes() const { return leased_bytes_ + orphaned_bytes_ + kept_bytes_; }
  std::uint64_t retained_bytes() const { return retained_.bytes(); }
  std::uint64_t vacated_bytes() const { return vacated_bytes_; }
  std::uint64_t pins() const { return pins_; }
  std::vector<Client> holders() const;

 private:
  struct Entry {
    ByteRange range;  // only the size counts while it is not resident
    std::uint64_t home = 0;
    Client holder = 0;  // 0: given back
    std::uint64_t pins = 0;
    std::uint64_t keeps = 0;  // in the store's own name
    std::uint64_t last_use = 0;
    bool surrendered = false;
    bool resident = true;
    bool shared = false;  // with other nodes
  };
  struct Holdings {
    std::unordered_map<std::uint64_t, std::uint64_t> pins;  // extent -> count
    std::unordered_set<std::uint64_t> leases;
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;
  void orphan(Entries::iterator entry);
  void release_if_free(Entries::iterator entry);
  /// The sum of which its bytes are a part.
  std::uint64_t& bytes_of(const Entry& entry);

  const std::uint64_t capacity_bytes_;
  RangeSet clean_;
  RangeSet retained_;
  Entries entries_;
  std::unordered_map<Client, Holdings> clients_;
  std::vector<std::uint64_t> ended_;
  std::vector<std::uint64_t> ended_shared_;
  std::uint64_t last_id_ = 0;
  std::uint64_t uses_ = 0;
  std::uint64_t vacated_bytes_ = 0;
  std::uint64_t leased_bytes_ = 0;
  std::uint64_t orphaned_bytes_ = 0;
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t pins_ = 0;
};

}  // namespace runtime
