// A prompt with partial samples, as it travels between workers and into checkpoints.
// Without torch.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "rl/rollout/request.h"

namespace rl {

/// A prompt whose samples are being generated.
struct PartialPrompt {
  std::vector<std::int32_t> ids;
  std::uint64_t seed = 0;
  std::vector<PartialSample> samples = {};  // all of them, or none where nothing has been generated

  auto fields() { return std::tie(ids, seed, samples); }
  bool operator==(const PartialPrompt&) const = default;
};

/// How much is to be finished, of prompts that stand oldest first.
struct PartialPlan {
  std::int64_t prompts = 0;      // that are wanted: generation ends when they have their samples
  std::int64_t must_finish = 0;  // this many oldest are waited for, however long they take
  std::int64_t restart = 0;      // this many oldest forget what was generated

  auto fields() { return std::tie(prompts, must_finish, restart); }
  bool operator==(const PartialPlan&) const = default;
};

}  // namespace rl
