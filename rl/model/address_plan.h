// The address space of a model: which of its parameters are cut for tensor parallelism, and how.
#pragma once

#include <vector>

#include "rl/mesh/address_space.h"
#include "rl/mesh/layout.h"
#include "rl/model/model_config.h"
#include "rl/model/model_plan.h"

namespace rl {

/// Into how many blocks what tensor parallelism cuts is cut: the first of 8, 4, 2, 3, 5, 7 that
/// divides the key heads, else 1. A property of the model, so that sums over blocks have the same
/// order on every mesh.
int tensor_blocks(const ModelConfig& config);

/// Unit 0 has the embeddings, unit 1 + i layer i, the last one the last norm, the output layer and
/// heads. What a part's role says is cut lies block by block: queries, keys and values by heads,
/// gate and up by rows, the output projection and down by columns (both as Shoeybi et al. 2019,
/// "Megatron-LM", arXiv:1909.08053), embedding and output layer by rows of the vocabulary. Rows
/// that the blocks do not divide are dealt unevenly. Norms, routers, latent down-projections, heads
/// and biases that are added once are not cut; experts are whole.
AddressSpace address_space(const ModelConfig& config, const ModelPlan& plan);

/// Which of its units are layers.
ModelUnits model_units(const ModelConfig& config);

}  // namespace rl
