// MatrixExchange: matrices of which ranks keep parts, on the ranks that compute with them whole.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/mesh/matrix_deal.h"
#include "rl/mesh/packed_ranges.h"
#include "runtime/core/result.h"

namespace rl {

/// Turn by turn (MatrixDeal) each rank receives one matrix from those that have parts of it. It
/// sends what it has made of the matrix back to them. Borrows the communicator; all ranks make the
/// same calls. Errors: those of Communicator. Memory: MatrixDeal::most_in_piece(). Sent in all:
/// each element that is not at home where it is computed goes there and back. Where ranks have all
/// of the arena, it only goes back, to each of them.
class MatrixExchange {
 public:
  /// Of an arena of N elements; `homes` by rank, whose parts lie packed. Empty: each rank has
  /// all of it.
  MatrixExchange(Communicator& communicator, std::int64_t elements,
                 std::vector<ArenaMatrix> matrices, std::span<const PackedRanges> homes);

  int turns() const { return static_cast<int>(deal_.turns().size()); }
  /// This rank's matrix of a turn; null: it has none.
  const ArenaMatrix* mine(int turn) const;

  /// Writes, or reads, what this rank has of a matrix at these places of its home; each of them is
  /// written once.
  using Write =
      std::function<void(const ArenaMatrix&, const ArenaRange& packed, std::span<float> into)>;
  using Read =
      std::function<void(const ArenaMatrix&, const ArenaRange& packed, std::span<const float>)>;

  /// `whole` (empty: it has none) becomes this rank's matrix, of what `write` writes on each rank.
  /// `write` is called for all that the rank has of the turn's matrices.
  runtime::Status collect(int turn, const Write& write, std::span<float> whole);
  /// `read` reads on each rank what others have in `whole`.
  runtime::Status distribute(int turn, std::span<const float> whole, const Read& read);

  /// Something was done between two exchanges.
  void progress() const { communicator_.progress("orthogonalization of a matrix"); }

  /// Elements of this rank's home, and what of it is matrices, as places.
  std::int64_t home_elements() const { return home().elements(); }
  std::vector<ArenaRange> matrices_at_home() const;

 private:
  // What of a piece lies on a rank that keeps it, for the rank that owns its matrix.
  struct Part {
    int owner = 0;
    int keeper = 0;
    const ArenaMatrix* matrix = nullptr;
    ArenaRange range;

    ArenaRange in_matrix() const {
      return {range.begin - matrix->offset, range.end - matrix->offset};
    }
  };

  const PackedRanges& home() const;
  bool has_all() const { return homes_.size() == 1; }
  std::vector<Part> parts_of(int turn, int piece) const;
  std::vector<std::span<float>> make_room(std::span<const Part> parts);
  runtime::Status move(std::span<const Outgoing> sent, std::span<const Incoming> received,
                       const char* what);

  Communicator& communicator_;
  std::vector<ArenaMatrix> matrices_;
  std::vector<PackedRanges> homes_;  // by rank; one: that of each
  MatrixDeal deal_;
  std::vector<float> room_;  // for parts of the others' matrices
};

}  // namespace rl
