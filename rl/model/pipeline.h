// Pipeline: the values that a stage receives from the one before it and sends to the next.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "rl/model/pass_team.h"
#include "rl/model/stage_cuts.h"

namespace rl {

/// Pipeline parallelism (Huang et al. 2019, "GPipe", arXiv:1811.06965): the ranks of a team are
/// stages, each of which computes its own layers, of all rows. Every rank goes through all layers
/// of a pass, and back, in the same order. At the border of two chunks rows go from one stage to
/// the other, and the other stages go past it. Where a stage has several ranks, each hands what it
/// has to the one at its place in the other stage. The errors of the team's communicator end the
/// pass. Borrows the team.
class Pipeline {
 public:
  /// Is called with each layer in the backward pass; see LayerListener::before_backward.
  using Told = std::function<void(std::int64_t layer)>;
  /// What remains to be done on the last stage when the first one has gone back through all.
  using Behind = std::function<void()>;

  Pipeline(const PassTeam& team, StageCuts cuts) : team_(&team), cuts_(std::move(cuts)) {}

  int stage() const { return team_->rank() / stage_ranks(); }
  bool is_first() const { return stage() == 0; }
  bool is_last() const { return stage() + 1 == cuts_.stages(); }
  bool has(std::int64_t layer) const;
  const StageCuts& cuts() const { return cuts_; }

  /// The pass comes to a layer, with the output `x` [rows, width] of this stage's last chunk, if
  /// one has begun. Where a chunk of another stage begins there, x is handed on. Where one of this
  /// stage begins, what it takes is returned, with a graph if `trains`. Its way back leads to x,
  /// and from the first chunk to the first layer and `behind`.
  at::Tensor at_layer(std::int64_t layer, const at::Tensor& x, std::int64_t rows,
                      std::int64_t width, bool trains, const Told& told,
                      const Behind& behind) const;

  /// Behind all layers: what the last stage made of the pass (fp32, on the CPU, some may be
  /// undefined), on every stage. On the others the way back from them leads to `x`, this stage's
  /// own output. Those that have a graph have one everywhere.
  std::vector<at::Tensor> outputs(const at::Tensor& x, std::vector<at::Tensor> made,
                                  const Told& told) const;

  /// The embeddings of the first stage, whose gradient is the last one's to add: it goes there.
  at::Tensor giving_gradient_to_last(const at::Tensor& embeddings) const;
  /// That gradient, on the last stage, [rows, width]; called by all but the first.
  at::Tensor gradient_of_first(std::int64_t rows, std::int64_t width) const;

 private:
  int stage_ranks() const { return team_->size() / cuts_.stages(); }
  // The rank of that stage at this one's place.
  int at_place(int stage) const { return stage * stage_ranks() + team_->rank() % stage_ranks(); }
  at::Tensor back_at(int begun, const at::Tensor& gradient, std::int64_t rows,
                     std::int64_t width) const;
  at::Tensor back_through(std::int64_t above, std::int64_t lowest, std::int64_t rows,
                          std::int64_t width, const Told& told) const;
  std::int64_t end_of(int chunk) const;

  const PassTeam* team_;
  StageCuts cuts_;
};

}  // namespace rl
