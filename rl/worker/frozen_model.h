// FrozenModel: a model that is not trained, whole on its rank or kept once by several.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/comm/communicator.h"
#include "rl/model/transformer.h"
#include "rl/optim/layer_pulse.h"
#include "rl/optim/unit_weights.h"
#include "runtime/core/result.h"

namespace rl {

/// The ranks that keep a frozen model's weights once together: none by default, so that it is whole
/// on each.
struct FrozenRanks {
  Communicator* all = nullptr;
  std::int64_t shard_ranks = 0;  // see UnitWeightsOptions

  bool share() const { return all != nullptr && all->size() > 1 && shard_ranks != 1; }
};

/// ZeRO-3 of weights that do not change (see UnitWeights). Ranks that share them make the same
/// passes, idle ones where they have no rows; the numbers are those of whole weights. Borrows the
/// communicator, on which nothing else is at work during a pass. A resource; one thread at a time.
class FrozenModel {
 public:
  /// Reads what the rank keeps, all of it where the model is whole. Errors: those of
  /// Transformer::load.
  static runtime::Result<std::unique_ptr<FrozenModel>> load(const std::filesystem::path& folder,
                                                            TransformerOptions options,
                                                            const FrozenRanks& ranks);

  /// Of a model with the same weights on every rank.
  FrozenModel(std::unique_ptr<Transformer> model, const FrozenRanks& ranks);
  FrozenModel(const FrozenModel&) = delete;
  FrozenModel& operator=(const FrozenModel&) = delete;
  ~FrozenModel();

  Transformer& transformer() { return *model_; }
  const Transformer& transformer() const { return *model_; }
  const ModelConfig& config() const { return model_->config(); }
  bool is_shared() const { return ranks_.share(); }

  /// The passes, with idle ones behind them where another rank has more: for passes that were not
  /// planned for all ranks. Collective where the model is shared. Errors: those of Communicator.
  runtime::Result<std::vector<MicroBatch>> in_step(std::vector<MicroBatch> passes) const;

  /// Elements of shared weights that had memory at most since the last call, for tests of it; -1
  /// where they are whole.
  std::int64_t most_weights_there();

 private:
  const FrozenRanks ranks_;
  std::unique_ptr<Transformer> model_;
  std::optional<LayerPulse> pulse_;
  std::optional<UnitWeights> weights_;
};

}  // namespace rl
