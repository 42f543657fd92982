// StageCuts: the layers and the weights of a model that each stage of a pipeline has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rl/mesh/column_cut.h"
#include "rl/mesh/range_set.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"

namespace rl {

/// Layers are cut into chunks, unevenly where they do not divide, which the stages take in turn. Of
/// two stages with two chunks each, the first one has chunks 0 and 2. The first stage has the
/// embeddings, the last one the last norm, the output layer and heads. Both read the table of a
/// tied output layer, and the last one adds up its gradient. A value.
class StageCuts {
 public:
  /// `chunks`: of each stage.
  StageCuts(const ModelConfig& config, std::span<const ParameterSpec> specs, int stages,
            int chunks = 1);

  int stages() const { return stages_; }
  /// The division of the layers into the chunks of all stages.
  const ColumnCut& layers() const { return layers_; }
  int stage_of(int chunk) const { return chunk % stages_; }
  /// The chunk that has the layer.
  int chunk_of(std::int64_t layer) const;
  /// The chunk that begins with that layer, but for the first one.
  std::optional<int> begun_by(std::int64_t layer) const;
  /// How many layers a stage has.
  std::int64_t layers_of(int stage) const;
  /// Whether embeddings and output layer are one.
  bool is_tied() const { return tied_; }

  /// The elements of the arena that a stage reads.
  const RangeSet& used(int stage) const { return used_[static_cast<std::size_t>(stage)]; }
  /// Of what it computes the gradient: each element has one such stage.
  const RangeSet& differentiated(int stage) const {
    return differentiated_[static_cast<std::size_t>(stage)];
  }

 private:
  int stages_ = 1;
  ColumnCut layers_;
  bool tied_ = false;
  std::vector<RangeSet> used_;
  std::vector<RangeSet> differentiated_;
};

}  // namespace rl
