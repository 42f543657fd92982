// The parameters of a model on which Muon makes orthogonal steps.
#pragma once

#include <span>
#include <vector>

#include "rl/mesh/matrix_deal.h"
#include "rl/model/parameters.h"

namespace rl {

/// The matrices between the layers, not embeddings and output layers, whose rows are looked up one
/// by one.
std::vector<ArenaMatrix> hidden_matrices(std::span<const ParameterSpec> specs);

}  // namespace rl
