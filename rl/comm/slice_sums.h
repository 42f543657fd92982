// SliceSums: sums over ranks of many stretches of values, brought together in one exchange.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/ordered_sum.h"
#include "rl/mesh/arena_range.h"

namespace rl {

/// A reduce-scatter that is under way while the ranks compute. Of each stretch a rank gets its own
/// slice from all others, and adds them up in the order of ranks. The sums have the bits of
/// OrderedSum. Memory: the own slices of all other ranks, until release(). What is sent must stay
/// until finish(). Borrows the communicator; all ranks make the same calls.
class SliceSums {
 public:
  struct Part {
    std::span<const ArenaRange> slices;  // of each rank, in the values
    std::vector<std::uint8_t> adds;      // 1: that rank adds in this round
    SumRounds<float>* rounds = nullptr;  // `kept`: with a place of the own slice's size
  };

  explicit SliceSums(Communicator& communicator) : communicator_(communicator) {}

  bool is_under_way() const { return !parts_.empty(); }
  /// Not while one is under way.
  void begin(std::span<const float> values, std::vector<Part> parts, const std::string& what);
  /// Adds to the parts' rounds. Without effect where nothing is under way. Errors: those of
  /// Communicator::finish().
  runtime::Status finish(bool last_round);
  /// Frees what it receives in. Not while one is under way.
  void release() { std::vector<float>().swap(received_); }

 private:
  void add(const Part& part, std::size_t& received) const;

  Communicator& communicator_;
  std::span<const float> values_;
  std::vector<Part> parts_;
  std::vector<float> received_;  // by part, and by rank within it
  Transfer transfer_;
};

}  // namespace rl
