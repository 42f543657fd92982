#include "rl/model/stage_cuts.h"

#include "rl/model/arena_units.h"
#include "runtime/core/check.h"

namespace rl {

StageCuts::StageCuts(const ModelConfig& config, std::span<const ParameterSpec> specs, int stages,
                     int chunks)
    : stages_(stages), layers_(config.layers, 1, stages * chunks) {
  CHECK(stages >= 1 && chunks >= 1 && stages * chunks <= config.layers);
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
    for (int chunk = stage; chunk < layers_.ranks(); chunk += stages) {
      const std::int64_t first = layers_.first(chunk);
      for (std::int64_t layer = first; layer < first + layers_.size(chunk); ++layer)
        add(units[static_cast<std::size_t>(layer) + 1]);
    }
    differentiated = differentiated.without(tied);
    if (stage == stages - 1) {
      add(units.back());
      differentiated = differentiated.united(tied);
    }
    used_.push_back(used);
    differentiated_.push_back(differentiated);
  }
}

int StageCuts::chunk_of(std::int64_t layer) const {
  int chunk = 0;
  while (layers_.first(chunk) + layers_.size(chunk) <= layer) ++chunk;
  return chunk;
}

std::optional<int> StageCuts::begun_by(std::int64_t layer) const {
  const int chunk = chunk_of(layer);
  if (chunk == 0 || layers_.first(chunk) != layer) return std::nullopt;
  return chunk;
}

std::int64_t StageCuts::layers_of(int stage) const {
  std::int64_t sum = 0;
  for (int chunk = stage; chunk < layers_.ranks(); chunk += stages_) sum += layers_.size(chunk);
  return sum;
}

}  // namespace rl
