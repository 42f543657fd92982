#include "rl/model/pass_parts.h"

#include <optional>
#include <string>
#include <utility>

#include "rl/model/family.h"
#include "rl/model/stage_cuts.h"
#include "rl/model/tensor_cuts.h"

namespace rl {

PassParts pass_parts(const ModelConfig& config, std::span<const ParameterSpec> specs,
                     const PassSharing& sharing) {
  const StageCuts layers(config, specs, static_cast<int>(sharing.stages),
                         static_cast<int>(sharing.chunks));
  const auto ranks = static_cast<int>(sharing.ranks);
  std::optional<TensorCuts> cuts;
  if (ranks > 1) cuts.emplace(config, plan_of(config), ranks, sharing.cut);
  PassParts parts;
  for (int stage = 0; stage < layers.stages(); ++stage) {
    for (int rank = 0; rank < ranks; ++rank) {
      RangeSet used = layers.used(stage);
      RangeSet differentiated = layers.differentiated(stage);
      if (cuts) {
        used = used.intersected(cuts->used(specs, rank));
        differentiated = differentiated.intersected(cuts->differentiated(specs, rank));
      }
      parts.used.push_back(std::move(used));
      parts.differentiated.push_back(std::move(differentiated));
    }
  }
  return parts;
}

runtime::Status check_pass_parts(const ModelConfig& config, const PassSharing& sharing) {
  if (sharing.stages > 1 && sharing.stages * sharing.chunks > config.layers) {
    const std::string each =
        sharing.chunks == 1 ? "" : " with " + std::to_string(sharing.chunks) + " chunks each";
    return runtime::invalid_argument(
        "the model has " + std::to_string(config.layers) + " layers, which cannot be dealt to " +
        std::to_string(sharing.stages) + " stages of a pipeline" + each);
  }
  if (sharing.ranks == 1) return {};
  return check_sharing_ranks(config, static_cast<int>(sharing.ranks), sharing.cut);
}

}  // namespace rl
