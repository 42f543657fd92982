// Learning rates of runs that train a LoRA adapter and leave the rate to its default. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "rl/config/config.h"

namespace rl {

/// A rate that the user left out, and what it is.
struct AdapterRate {
  std::string key;
  double rate = 0.0;
  std::string note;  // for people; empty where the rate is not used
};

/// An adapter bears, and needs, a higher rate than the weights below it: ten times the default.
/// Those of `config`, a command's of `keys` with its references resolved; none where all weights
/// are trained, and where the user has set the rate.
std::vector<AdapterRate> adapter_rates(const Config& config, const KeyTable& keys);

}  // namespace rl
