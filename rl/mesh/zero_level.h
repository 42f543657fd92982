// ZeroLevel: the parts of a model in training that are divided over the ranks.
#pragma once

namespace rl {

/// What is kept once per group of ranks instead of on every rank that computes with it;
/// Rajbhandari et al. 2020, "ZeRO", arXiv:1910.02054. 3 is FSDP with reshard_after_forward.
enum class ZeroLevel { kNone = 0, kMoments = 1, kGradients = 2, kWeights = 3 };

}  // namespace rl
