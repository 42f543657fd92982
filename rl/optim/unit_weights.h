// UnitWeights: a model whose weights each rank keeps a part of, and which are gathered unit by unit
// as a pass comes to them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/mesh/packed_ranges.h"
#include "rl/model/arena_units.h"
#include "rl/model/layer_listener.h"
#include "rl/model/pass_memory.h"
#include "rl/model/transformer.h"
#include "runtime/core/result.h"

namespace rl {

struct UnitWeightsOptions {
  /// What each rank's passes read, by rank; empty: all of the arena.
  std::vector<RangeSet> used = {};
  /// What the rank's passes read stays, and only the homes' values are asked for: ZeRO-2.
  bool stays = false;
  /// The layers' weights are given back when the forward pass is through them, and gathered again
  /// in the backward pass. Otherwise they stay until the backward pass is through them.
  bool reshard_after_forward = true;
  /// How many neighbouring ranks keep all weights together (hybrid sharding; Zhao et al. 2023). The
  /// number divides that of the ranks, and homes are dealt to such groups (unit_homes()). 0: all
  /// ranks. Not where what is read stays.
  std::int64_t shard_ranks = 0;
  /// It begins as after scatter(), and weights are never there twice: their memory in the arena
  /// goes while what the rank keeps is copied.
  bool begins_scattered = false;
  /// Where what is read stays on a device: the same on the host, which homes are kept in.
  at::Tensor host_copy = {};
};

/// ZeRO-3, or FSDP that reshards after the forward pass (Rajbhandari et al. 2020, arXiv:1910.02054;
/// Zhao et al. 2023, arXiv:2304.11277). Between passes the model's arena has no memory, and the
/// rank's part lies packed next to it. In a pass the unit that computes is there, and the next one
/// is on its way, so that waiting hides behind computing. Where another pass follows, what it
/// begins with is on its way while this one ends. All ranks make the same passes, idle ones where
/// they have no rows. What fails in a pass ends it, with the errors of Communicator. On a device
/// weights come by pages, from the host, where a rank's part is. Borrows everything.
class UnitWeights final : public LayerListener {
 public:
  /// The arena has what the homes are of, at least, and keeps its memory until the first scatter().
  UnitWeights(Communicator& communicator, Transformer& model, std::span<const ArenaUnit> units,
              std::span<const RangeSet> homes, const UnitWeightsOptions& options);
  ~UnitWeights() override;

  /// The rank's home, packed in the order of the arena: what an optimizer works on; then spread()
  /// is called. Where all of the arena stays, or several groups keep the weights, a copy that lasts
  /// until then.
  std::span<float> home();

  /// What ranks keep, and what of the arena is there between passes, becomes what the homes are.
  /// Collective.
  runtime::Status spread();

  /// Brings all of the arena together on every rank, for what reads it otherwise than by training
  /// passes; scatter() lets it go. They nest. Collective.
  runtime::Status gather();
  void scatter();

  /// Whether all of the arena stays: an optimizer's steps apart it is as of one rank.
  bool keeps_all() const { return options_.stays && options_.used.empty(); }

  /// Neighbouring ranks that keep all weights together.
  int shard_ranks() const { return group_; }
  /// The elements that kept_values() holds.
  const PackedRanges& kept() const { return packed_; }
  /// What the rank keeps, packed: its home, or what its group's part contains next to it. Not where
  /// all of the arena stays.
  std::span<const float> kept_values() const { return kept_; }
  /// Brings the weights together on rank 0, in `whole`, which is empty elsewhere. Collective; not
  /// where all of the arena stays. Errors: those of Communicator.
  runtime::Status collect(std::span<float> whole);

  /// What of an arena like this one keep_from() reads.
  RangeSet needed() const;
  /// What the rank keeps, and what stays of the arena, become what an arena like this one has
  /// there.
  void keep_from(std::span<const float> arena);

  /// Whether weights that passes read have no memory but in these.
  bool is_scattered() const { return whole_ == 0 && !options_.stays; }

  /// Elements of the arena that had memory at most, since the last call or scatter().
  std::int64_t most_there();

  void before_pass(bool another_follows) override { another_follows_ = another_follows; }
  void before_forward(std::int64_t layer) override;
  void before_backward(std::int64_t layer) override;
  void after_pass() override;

 private:
  static constexpr int kNone = -1;

  bool has_copies() const { return group_ < communicator_.size(); }
  runtime::Status copy_step();
  RangeSet used_by(int rank) const;
  RangeSet read_by(int rank, int unit) const;
  RangeSet read_in_pass(int rank, const ArenaUnit& unit) const;
  std::unique_ptr<PassMemory> make_memory() const;
  void move_out();
  void open();
  void fetch(int unit);
  void bring(int unit);
  void drop(int unit);
  void fetch_for_next_pass();
  void let_go_of_all_but(int first, int last);
  void let_go_of_what_follows(int unit);
  void begin(int unit);

  Communicator& communicator_;
  Transformer& model_;
  const std::vector<ArenaUnit> units_;
  const UnitWeightsOptions options_;
  const int group_;                     // ranks
  const std::vector<RangeSet> homes_;   // by rank
  const std::vector<RangeSet> copies_;  // by rank: what it keeps
  const PackedRanges packed_;           // this rank's
  const std::unique_ptr<PassMemory> memory_;
  const std::span<float> arena_;    // of it, on the host
  std::vector<float> kept_;         // empty: it is in the arena alone
  std::vector<float> step_;         // where there are copies, the home that an optimizer works on
  bool steps_ = false;              // it does
  std::vector<char> there_;         // by unit: it has memory
  const bool projects_embeddings_;  // between their width and that of the layers
  bool another_follows_ = false;
  int coming_ = kNone;
  Transfer transfer_;
  int whole_ = 1;  // gathers that are not undone
};

}  // namespace rl
