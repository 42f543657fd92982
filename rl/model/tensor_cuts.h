// TensorCuts: the rows of a model's weights that each rank of a team multiplies with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rl/mesh/column_cut.h"
#include "rl/mesh/pass_sharing.h"
#include "rl/mesh/range_set.h"
#include "rl/model/model_config.h"
#include "rl/model/model_plan.h"
#include "rl/model/parameters.h"
#include "runtime/core/result.h"

namespace rl {

/// The rows of every linear layer are dealt. Those of queries, keys and values are dealt by key
/// heads, which are never cut. Where experts are dealt, each of them stays whole. All others are
/// dealt row by row, unevenly where they do not divide. So are those of the vocabulary's tables.
/// Norms, routers, tables of positions and heads are whole on every rank. A value.
class TensorCuts {
 public:
  TensorCuts(const ModelConfig& config, const ModelPlan& plan, int ranks,
             PassCut cut = PassCut::kOutputs);

  /// The cut of the layer's rows; nullopt: every rank has all of them.
  std::optional<ColumnCut> of(const LinearPlan& layer) const;
  /// The cut of the vocabulary in the embedding.
  const ColumnCut& vocabulary() const { return vocabulary_; }

  /// What a rank reads, of an arena with these places: where rows of a pass are cut all but the
  /// experts of others.
  RangeSet used(std::span<const ParameterSpec> specs, int rank) const;
  /// Of what a rank computes the gradient that counts: no element has two such ranks, and each of a
  /// parameter has one.
  RangeSet differentiated(std::span<const ParameterSpec> specs, int rank) const;

 private:
  struct Rows {
    ParameterIndex parameter = kNoParameter;
    std::int64_t first = 0;
    ColumnCut cut;
    bool read_in_part = true;
  };

  void add(const LinearPlan& layer, const ColumnCut& cut);
  void add(const LinearPlan& layer);
  void add_expert(const MlpPlan& expert, std::int64_t index, std::int64_t experts);
  void add_rows(ParameterIndex parameter, std::int64_t first, const ColumnCut& cut);
  RangeSet ranges(std::span<const ParameterSpec> specs, int rank, bool with_whole, bool read) const;

  int team_ = 1;
  PassCut cut_ = PassCut::kOutputs;
  bool expert_ = false;  // what is being added
  ColumnCut vocabulary_;
  std::vector<Rows> rows_;
  std::map<std::pair<ParameterIndex, std::int64_t>, std::size_t> index_;  // into rows_
};

/// Whether N ranks can share a pass. kInvalidArgument: the model has fewer key heads, or
/// experts where these are dealt, than there are ranks to deal them to.
runtime::Status check_sharing_ranks(const ModelConfig& config, int ranks,
                                    PassCut cut = PassCut::kOutputs);

}  // namespace rl
