// How a pass computes: a value that goes with it through graph and operations.
#pragma once

namespace rl {

struct PassOptions {
  bool bf16 = false;              // see Bf16Products
  bool recompute_layers = false;  // see RecomputeLayers
};

}  // namespace rl
