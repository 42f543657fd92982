#include "rl/run/rl/sample_dump.h"

#include <limits>

#include "rl/batch/worker_lists.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;

std::vector<std::vector<float>> token_advantages(const StepBatch& batch,
                                                 const std::vector<TokenEstimates>& estimates,
                                                 const AdvantageScaling& scaling) {
  std::vector<std::vector<float>> advantages;
  for (std::size_t worker = 0; worker < batch.shares.size(); ++worker) {
    const std::vector<float>& of_tokens = estimates[worker].advantages;
    std::size_t token = 0;
    for (const SampleGroup& group : batch.shares[worker].groups) {
      for (const Sample& sample : group.samples) {
        std::vector<float>& of_sample = advantages.emplace_back();
        for (std::int64_t i = 0; i < sample.learned_tokens && token < of_tokens.size(); ++i)
          of_sample.push_back(
              static_cast<float>((of_tokens[token++] - scaling.mean) * scaling.scale));
      }
    }
  }
  return advantages;
}

}  // namespace

void SampleDump::write(std::int64_t step, bool append, const DumpedBatch& batch) {
  auto texts = reward_.texts(batch.batches, batch.tasks, batch.scores,
                             std::numeric_limits<std::int64_t>::max());
  if (!texts.ok()) {
    LOG(warn, "samples of step {}: {}; training continues", step, texts.status().message());
    return;
  }
  std::vector<DumpedSample> samples;
  for (SampleText& text : join<SampleText>(*texts)) {
    const std::size_t i = samples.size();
    DumpedSample& sample = samples.emplace_back(DumpedSample{.text = std::move(text)});
    if (i < batch.advantages.size()) sample.advantages = batch.advantages[i];
    if (i < batch.extras.size()) sample.extras = batch.extras[i];
  }
  dumper_.write({folder_, step, append}, samples);
}

Result<DumpedBatch> dumped_step(const StepBatch& batch, const Credit& credit,
                                const EstimateCalls& estimates) {
  DumpedBatch dumped{.batches = batch.batches(),
                     .tasks = batch.tasks(),
                     .scores = batch.by_worker(&Sample::score),
                     .extras = batch.all<std::map<std::string, double>>(&Sample::extras)};
  if (!credit.per_token) {
    for (const float advantage : batch.all<float>(&Sample::advantage))
      dumped.advantages.push_back({advantage});
    return dumped;
  }
  const Result<std::vector<TokenEstimates>> fetched = estimates.get(credit.estimates);
  if (!fetched.ok()) return fetched.status();
  dumped.advantages = token_advantages(batch, *fetched, credit.scaling);
  return dumped;
}

}  // namespace rl
