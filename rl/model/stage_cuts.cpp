#include "rl/model/stage_cuts.h"

#include "rl/model/arena_units.h"
#include "runtime/core/check.h"

namespace rl {

StageCuts::StageCuts(const ModelConfig& config, std::span<const ParameterSpec> specs, int stages)
    : layers_(config.layers, 1, stages) {
  CHECK(stages >= 1 && stages <= config.layers);
  const std::vector<ArenaUnit> units = arena_units(config, specs);
  const RangeSet tied = units.back().borrowed();
  tied_ = !tied.empty();
  for (int stage = 0; stage < stages; ++stage) {
    RangeSet used, differentiated;
    const auto add = [&](const ArenaUnit& unit) {
      used = used.united(unit.read);
      differentiated = differentiated.united(unit.own);
    };
    if (stage == 0) add(units.front());
    const std::int64_t first = layers_.first(stage);
    for (std::int64_t layer = first; layer < first + layers_.size(stage); ++layer)
      add(units[static_cast<std::size_t>(layer) + 1]);
    differentiated = differentiated.without(tied);
    if (stage == stages - 1) {
      add(units.back());
      differentiated = differentiated.united(tied);
    }
    used_.push_back(used);
    differentiated_.push_back(differentiated);
  }
}

std::optional<int> StageCuts::begun_by(std::int64_t layer) const {
  for (int stage = 1; stage < stages(); ++stage)
    if (layers_.first(stage) == layer) return stage;
  return std::nullopt;
}

}  // namespace rl
