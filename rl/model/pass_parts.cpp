#include "rl/model/pass_parts.h"

#include <string>

#include "rl/model/family.h"
#include "rl/model/stage_cuts.h"
#include "rl/model/tensor_cuts.h"

namespace rl {

PassParts pass_parts(const ModelConfig& config, std::span<const ParameterSpec> specs,
                     const PassSharing& sharing) {
  const auto ranks = static_cast<int>(sharing.ranks);
  PassParts parts;
  if (sharing.cut == PassCut::kLayers) {
    const StageCuts cuts(config, specs, ranks);
    for (int stage = 0; stage < ranks; ++stage) {
      parts.used.push_back(cuts.used(stage));
      parts.differentiated.push_back(cuts.differentiated(stage));
    }
    return parts;
  }
  const TensorCuts cuts(config, plan_of(config), ranks, sharing.cut);
  for (int rank = 0; rank < ranks; ++rank) {
    parts.used.push_back(cuts.used(specs, rank));
    parts.differentiated.push_back(cuts.differentiated(specs, rank));
  }
  return parts;
}

runtime::Status check_pass_parts(const ModelConfig& config, const PassSharing& sharing) {
  if (sharing.cut != PassCut::kLayers)
    return check_sharing_ranks(config, static_cast<int>(sharing.ranks), sharing.cut);
  if (sharing.ranks <= config.layers) return {};
  return runtime::invalid_argument("the model has " + std::to_string(config.layers) +
                                   " layers, which cannot be dealt to " +
                                   std::to_string(sharing.ranks) + " stages of a pipeline");
}

}  // namespace rl
