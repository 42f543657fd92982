// Mesh: which rank stands where when several workers train or run one model together.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// The ways in which ranks share work, outermost first: neighbours in the last one talk most.
enum class Axis {
  kStage,     // layers: pipeline parallelism
  kReplica,   // samples; whole copies of the shards
  kShard,     // samples; weights, gradients or moments are cut over it (ZeRO, FSDP)
  kSequence,  // rows of the same samples; heads in attention (Ulysses)
  kTensor,    // heads, columns of the MLP, vocabulary (Megatron)
};
inline constexpr std::size_t kAxes = 5;
inline constexpr std::array<Axis, kAxes> kAllAxes = {Axis::kStage, Axis::kReplica, Axis::kShard,
                                                     Axis::kSequence, Axis::kTensor};

/// "tensor".
const char* axis_name(Axis axis);

/// A rank's place on each axis.
struct Coordinates {
  std::array<int, kAxes> on{};

  int operator[](Axis axis) const { return on[static_cast<std::size_t>(axis)]; }
  int& operator[](Axis axis) { return on[static_cast<std::size_t>(axis)]; }
  bool operator==(const Coordinates&) const = default;
};

struct MeshShape {
  std::array<int, kAxes> sizes = {1, 1, 1, 1, 1};
  int experts = 1;  // expert parallelism: so many neighbours of replica x shard x sequence hold the
                    // experts of a layer together (a second reading of these axes)

  int operator[](Axis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  int& operator[](Axis axis) { return sizes[static_cast<std::size_t>(axis)]; }
  bool operator==(const MeshShape&) const = default;

  /// "2 stages x 2 tensor"; "1 rank".
  std::string text() const;
};

/// A value. `order` says which rank has which position, so that neighbours may be put on one node;
/// by default rank r has position r.
class Mesh {
 public:
  Mesh() : Mesh(MeshShape()) {}
  explicit Mesh(const MeshShape& shape);

  /// kInvalidArgument: a size below one, `experts` that does not divide replica x shard x sequence,
  /// an order that is not a permutation of the ranks.
  static runtime::Result<Mesh> make(const MeshShape& shape, std::vector<int> order = {});

  const MeshShape& shape() const { return shape_; }
  int size(Axis axis) const { return shape_[axis]; }

  /// Ranks in all.
  int world() const { return static_cast<int>(order_.size()); }

  /// Groups of ranks that learn from different samples: replica x shard.
  int data_ranks() const { return size(Axis::kReplica) * size(Axis::kShard); }
  /// Which of them a rank belongs to.
  int data_rank(int rank) const;

  Coordinates of(int rank) const;
  int rank_at(const Coordinates& where) const;

  /// The ranks that differ from `rank` on these axes alone, it included, in the order of their
  /// coordinates (the first of the axes outermost).
  std::vector<int> peers(int rank, std::initializer_list<Axis> axes) const;

  /// The ranks that hold a layer's experts with `rank`, it included, in the order of the experts.
  std::vector<int> expert_peers(int rank) const;
  /// Its place among them.
  int expert_rank(int rank) const;

  bool operator==(const Mesh&) const = default;

 private:
  int position(const Coordinates& where) const;
  int expert_position(int rank) const;

  MeshShape shape_;
  std::vector<int> order_;     // position -> rank
  std::vector<int> position_;  // rank -> position
};

}  // namespace rl
