#include "rl/run/rl/response_credit.h"

#include "rl/algo/group_advantage.h"
#include "runtime/core/check.h"

namespace rl {

using runtime::Result;

ResponseFormula group_formula(AdvantageEstimator estimator, bool normalize_by_std) {
  return [=](const StepBatch& batch) -> Result<std::vector<float>> {
    return response_advantages(estimator, batch.all<float>(&Sample::reward),
                               batch.prompt_of_samples(),
                               batch.all<std::int64_t>(&Sample::learned_tokens), normalize_by_std);
  };
}

ResponseFormula custom_formula(CustomAdvantages advantages) {
  return [advantages = std::move(advantages)](const StepBatch& batch) {
    return advantages.of(batch.all<float>(&Sample::reward), batch.prompt_of_samples(),
                         batch.all<std::int64_t>(&Sample::learned_tokens));
  };
}

ResponseFormula component_formula(std::vector<double> weights, bool normalize_by_std) {
  return [=](const StepBatch& batch) -> Result<std::vector<float>> {
    std::vector<std::vector<float>> components;
    for (const WorkerShare& share : batch.shares) {
      for (const SampleGroup& group : share.groups) {
        for (const Sample& sample : group.samples) {
          components.resize(sample.components.size());
          for (std::size_t k = 0; k < components.size(); ++k)
            components[k].push_back(static_cast<float>(sample.components[k]));
        }
      }
    }
    return gdpo_advantages(components, weights, batch.prompt_of_samples(),
                           batch.all<std::int64_t>(&Sample::learned_tokens), normalize_by_std);
  };
}

ResponseFormula label_formula() {
  return [](const StepBatch& batch) -> Result<std::vector<float>> {
    return disco_labels(batch.all<float>(&Sample::score));
  };
}

runtime::Status ResponseCredit::assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                                       StepTimer& timer) {
  const Result<std::vector<float>> advantages = formula_(batch);
  if (!advantages.ok()) return advantages.status();
  put_advantages(batch, *advantages);
  return {};
}

void put_advantages(StepBatch& batch, const std::vector<float>& advantages) {
  CHECK(advantages.size() == batch.size());
  auto next = advantages.begin();
  batch.for_each([&](Sample& sample) { sample.advantage = *next++; });
}

}  // namespace rl
