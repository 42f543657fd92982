#include "rl/worker/frozen_model.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "rl/mesh/unit_homes.h"
#include "rl/model/arena_units.h"
#include "rl/optim/unit_shards.h"

namespace rl {

using runtime::Result;

namespace {

int group_of(const FrozenRanks& ranks) {
  return ranks.shard_ranks > 0 ? static_cast<int>(ranks.shard_ranks) : ranks.all->size();
}

std::vector<RangeSet> homes_of(const FrozenRanks& ranks, std::span<const ArenaUnit> units,
                               std::span<const ParameterSpec> specs) {
  return homes_of(units, arena_elements(specs), ranks.all->size(), group_of(ranks));
}

RangeSet kept_by(const FrozenRanks& ranks, const ModelConfig& config) {
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  const std::vector<RangeSet> homes = homes_of(ranks, arena_units(config, specs), specs);
  return group_homes(homes, group_of(ranks))[static_cast<std::size_t>(ranks.all->rank())];
}

}  // namespace

Result<std::unique_ptr<FrozenModel>> FrozenModel::load(const std::filesystem::path& folder,
                                                       TransformerOptions options,
                                                       const FrozenRanks& ranks) {
  if (ranks.share())
    options.part = [ranks](const ModelConfig& config) { return kept_by(ranks, config); };
  Result<std::unique_ptr<Transformer>> model = Transformer::load(folder, options);
  if (!model.ok()) return model.status();
  return std::make_unique<FrozenModel>(std::move(*model), ranks);
}

FrozenModel::FrozenModel(std::unique_ptr<Transformer> model, const FrozenRanks& ranks)
    : ranks_(ranks), model_(std::move(model)) {
  if (!ranks_.share()) return;
  model_->tell(pulse_.emplace(*ranks_.all));
  const std::span<const ParameterSpec> specs = model_->parameters().specs();
  const std::vector<ArenaUnit> units = arena_units(model_->config(), specs);
  weights_.emplace(*ranks_.all, *model_, units, homes_of(ranks_, units, specs),
                   UnitWeightsOptions{.shard_ranks = group_of(ranks_), .begins_scattered = true});
}

FrozenModel::~FrozenModel() {
  if (pulse_) model_->stop_telling(*pulse_);
}

Result<std::vector<MicroBatch>> FrozenModel::in_step(std::vector<MicroBatch> passes) const {
  if (!is_shared()) return passes;
  const Result<std::vector<std::uint64_t>> counts =
      ranks_.all->all_gather(passes.size(), "the number of passes");
  if (!counts.ok()) return counts.status();
  const std::int64_t end = passes.empty() ? 0 : passes.back().last;
  passes.resize(*std::ranges::max_element(*counts), MicroBatch{end, end});
  return passes;
}

std::int64_t FrozenModel::most_weights_there() { return weights_ ? weights_->most_there() : -1; }

}  // namespace rl
