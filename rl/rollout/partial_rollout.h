// Partial rollouts: of many prompts as many as are wanted are finished. What the others have by
// then is kept, to go on from with other weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/rollout/engine.h"
#include "rl/rollout/partial_prompt.h"
#include "runtime/core/result.h"

namespace rl {

struct PartialGeneration {
  std::vector<std::int64_t> finished;  // plan.prompts indices into the prompts, ascending: the
                                       // oldest of those that are done
  std::vector<std::vector<Completion>> completions;  // of each of them, in the order of samples
  std::vector<PartialPrompt> rest;                   // the others, in their order
};

/// Generates as `like` says (its prompt and seed are those of each prompt) until the plan is
/// fulfilled. Which prompts finish depends on them and their seeds alone, not on time; with them on
/// EngineOptions, where not all samples run at once. Responses go on beyond a change of weights
/// (Kimi Team 2025, arXiv:2501.12599, "partial rollouts"); their log-probabilities are those of the
/// weights that generated each token. kInvalidArgument: more prompts wanted than there are, partial
/// samples that do not fit; otherwise the engine's errors, with the prompt.
runtime::Result<PartialGeneration> generate_partially(Engine& engine, const Request& like,
                                                      std::span<const PartialPrompt> prompts,
                                                      const PartialPlan& plan);

}  // namespace rl
