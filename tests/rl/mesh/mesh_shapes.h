// Meshes by the sizes of their axes.
#pragma once

#include "rl/mesh/mesh.h"

namespace rl::testing {

inline MeshShape shape(int stages, int replicas, int shards, int sequence, int tensor,
                       int experts = 1) {
  return {.sizes = {stages, replicas, shards, sequence, tensor}, .experts = experts};
}

}  // namespace rl::testing
