#include "rl/run/rl/ref_lists.h"

namespace rl {

std::vector<BatchRefs> needed_batches(const BatchRefs& batches, const PromptPlaces& places,
                                      const runtime::ObjectRef<RolloutBatch>& nothing) {
  std::vector<BatchRefs> needed(places.size(), BatchRefs(batches.size(), nothing));
  for (std::size_t worker = 0; worker < places.size(); ++worker) {
    for (const PromptPlace& place : places[worker]) {
      const auto from = static_cast<std::size_t>(place.worker);
      needed[worker][from] = batches[from];
    }
  }
  return needed;
}

}  // namespace rl
