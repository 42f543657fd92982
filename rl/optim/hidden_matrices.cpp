#include "rl/optim/hidden_matrices.h"

#include <string>

namespace rl {

std::vector<ArenaMatrix> hidden_matrices(std::span<const ParameterSpec> specs) {
  std::vector<ArenaMatrix> matrices;
  for (const ParameterSpec& spec : specs) {
    const auto named = [&](const char* part) { return spec.name.find(part) != std::string::npos; };
    const bool looked_up = named("embed") || named("wte") || named("wpe") || named("head") ||
                           named("score") || named("output_layer");
    if (spec.shape.size() == 2 && !spec.frozen && !looked_up)
      matrices.push_back({spec.offset, spec.shape[0], spec.shape[1]});
  }
  return matrices;
}

}  // namespace rl
