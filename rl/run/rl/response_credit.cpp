#include "rl/run/rl/response_credit.h"

#include <cstddef>
#include <cstdint>

#include "runtime/core/check.h"

namespace rl {

using runtime::Result;

runtime::Status ResponseCredit::assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                                       StepTimer& timer) {
  const Result<std::vector<float>> advantages =
      estimator_.advantages(scored_responses(batch), settings_);
  if (!advantages.ok()) return advantages.status();
  put_advantages(batch, *advantages);
  return {};
}

ScoredResponses scored_responses(const StepBatch& batch) {
  ScoredResponses responses{.rewards = batch.all<float>(&Sample::reward),
                            .scores = batch.all<float>(&Sample::score),
                            .groups = batch.prompt_of_samples(),
                            .lengths = batch.all<std::int64_t>(&Sample::learned_tokens)};
  for (const WorkerShare& share : batch.shares) {
    for (const SampleGroup& group : share.groups) {
      for (const Sample& sample : group.samples) {
        responses.components.resize(sample.components.size());
        for (std::size_t k = 0; k < sample.components.size(); ++k)
          responses.components[k].push_back(static_cast<float>(sample.components[k]));
      }
    }
  }
  return responses;
}

void put_advantages(StepBatch& batch, const std::vector<float>& advantages) {
  CHECK(advantages.size() == batch.size());
  auto next = advantages.begin();
  batch.for_each([&](Sample& sample) { sample.advantage = *next++; });
}

}  // namespace rl
