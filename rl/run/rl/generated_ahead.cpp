#include "rl/run/rl/generated_ahead.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

using runtime::ObjectRef;
using runtime::Result;
using runtime::Status;

constexpr const char* kAheadFile = "ahead.bin";

Status other_samples(const std::filesystem::path& file, std::int64_t step) {
  return runtime::invalid_argument(
      file.string() + ": has other samples than step " + std::to_string(step) +
      " needs: data.train_batch_size and rollout.n must stay as they were");
}

}  // namespace

// By the weights of now. A version's name is used again once all that was asked of it has arrived.
// Readers thus find the very version that they need, though newer ones have been published.
Status GeneratedAhead::begin(std::int64_t step, std::int64_t weights) {
  Ahead ahead{.step = step, .weights = weights, .position = prompts_.position()};
  Result<StepPrompts> prompts = prompts_.next(step, 0);
  if (!prompts.ok()) return prompts.status();
  ahead.prompts = std::move(*prompts);
  const bool changed = published_.version == 0 || published_.step != weights;
  const std::uint64_t version = published_.version + (changed ? 1 : 0);
  const std::string name =
      options_.weights_name + "-" +
      std::to_string(version % static_cast<std::uint64_t>(options_.steps_ahead));
  if (changed) {
    if (const Status published = calls_.publish(name, version); !published.ok()) return published;
    published_ = {.version = version, .step = weights};
  }
  ahead.generated = calls_.begin(ahead.prompts.batches, name, version);
  ahead_.push_back(std::move(ahead));
  return {};
}

Status GeneratedAhead::fill(std::int64_t first, std::int64_t weights) {
  const auto wanted = static_cast<std::size_t>(options_.steps_ahead);
  while (ahead_.size() < wanted) {
    const std::int64_t next = first + static_cast<std::int64_t>(ahead_.size());
    if (next > options_.total_steps) break;
    if (const Status begun = begin(next, weights); !begun.ok()) return begun;
  }
  return {};
}

Result<GeneratedSamples> GeneratedAhead::generate(const SampleRequest& request, StepTimer& timer) {
  const std::int64_t step = request.step, steps_done = step - 1;
  if (const Status filled = fill(step, steps_done); !filled.ok())
    return filled;  // of the first step; later ones find what the step before has asked for
  Ahead now = std::move(ahead_.front());
  ahead_.pop_front();
  GeneratedSamples samples{.prompts = std::move(now.prompts), .generated = std::move(now.restored)};
  if (samples.generated.empty()) {
    auto generated = calls_.finish(now.generated);
    if (!generated.ok()) return generated.status().with_context("the rollout workers");
    samples.generated = std::move(*generated);
  }
  timer.lap("gen");
  if (step < options_.total_steps) {
    if (const Status filled = fill(step + 1, steps_done); !filled.ok()) return filled;
    timer.lap("sync_rollout_weights");  // verl's name for it
  }
  std::size_t count = 0;
  for (const Generated& part : samples.generated) count += part.summary.response_tokens.size();
  const std::vector<std::int64_t> versions(count, now.weights);
  add_staleness(samples.metrics, {.oldest = versions, .newest = versions}, steps_done);
  return samples;
}

std::vector<StateFile> GeneratedAhead::state_files() const {
  if (ahead_.empty()) return {};
  return {{kAheadFile, [ahead = ahead_, &calls = calls_, &batches = batches_] {
             return encode(ahead, calls, batches);
           }}};
}

// The samples in the order of the steps and of their prompts, whichever workers have them: another
// number of workers can continue with them.
Result<std::string> GeneratedAhead::encode(const std::deque<Ahead>& ahead, const AheadCalls& calls,
                                           const BatchCalls& batches) {
  std::vector<SavedGroup> saved;
  for (const Ahead& step : ahead) {
    Result<std::vector<SavedGroup>> of_step = groups_of(step, calls, batches);
    if (!of_step.ok()) return of_step.status();
    std::move(of_step->begin(), of_step->end(), std::back_inserter(saved));
  }
  return encode_groups(saved);
}

Result<std::vector<SavedGroup>> GeneratedAhead::groups_of(const Ahead& ahead,
                                                          const AheadCalls& calls,
                                                          const BatchCalls& batches) {
  std::vector<Generated> generated = ahead.restored;
  if (generated.empty()) {
    auto gathered = calls.finish(ahead.generated);
    if (!gathered.ok()) return gathered.status();
    generated = std::move(*gathered);
  }
  std::size_t prompts = 0;
  for (const PromptShard& shard : ahead.prompts.shards) prompts += shard.prompts.size();
  std::vector<SavedGroup> saved(prompts);
  for (std::size_t worker = 0; worker < generated.size(); ++worker) {
    const Result<RolloutBatch> batch = batches.get(generated[worker].batch);
    if (!batch.ok()) return batch.status();
    const std::vector<std::int64_t>& numbers = ahead.prompts.shards[worker].prompts;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::int64_t row[] = {static_cast<std::int64_t>(i)};
      Result<RolloutBatch> alone = append_prompts({}, *batch, row);
      if (!alone.ok()) return alone.status();
      const auto samples = static_cast<std::size_t>(alone->samples());
      // They have no scores yet.
      saved[static_cast<std::size_t>(numbers[i])] = {.batch = std::move(*alone),
                                                     .step = ahead.step,
                                                     .uses = 0,
                                                     .task = {},
                                                     .scores = std::vector<double>(samples),
                                                     .baselines = {},
                                                     .components = {}};
    }
  }
  return saved;
}

Status GeneratedAhead::restore(const std::filesystem::path& folder, const SavedAt& at) {
  ahead_.clear();
  const std::filesystem::path file = folder / kAheadFile;
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    LOG(info,
        "{}: the checkpoint has no samples generated ahead; those of the next step are generated "
        "by its "
        "weights",
        file.string());
    return {};
  }
  const std::string bytes = runtime::rest_of(in);
  const Result<std::vector<SavedGroup>> saved = decode_groups(bytes);
  if (!saved.ok()) return saved.status().with_context(file.string());
  std::span<const SavedGroup> groups = *saved;
  const auto of_step = static_cast<std::size_t>(options_.batch_prompts);
  for (std::int64_t step = at.step + 1; !groups.empty(); groups = groups.subspan(of_step), ++step) {
    if (groups.size() < of_step) return other_samples(file, step);
    if (const Status restored = restore_step(groups.first(of_step), step, file); !restored.ok())
      return restored;
  }
  return {};
}

Status GeneratedAhead::restore_step(std::span<const SavedGroup> groups, std::int64_t step,
                                    const std::filesystem::path& file) {
  // As many steps ahead as now, unless the run continues with another number.
  const std::int64_t weights = std::max<std::int64_t>(0, step - 1 - options_.steps_ahead);
  Ahead ahead{.step = step, .weights = weights, .position = prompts_.position()};
  Result<StepPrompts> prompts = prompts_.next(step, 0);
  if (!prompts.ok()) return prompts.status();
  ahead.prompts = std::move(*prompts);
  for (const PromptShard& shard : ahead.prompts.shards) {
    RolloutBatch batch;
    for (const std::int64_t number : shard.prompts) {
      const SavedGroup& group = groups[static_cast<std::size_t>(number)];
      if (group.step != step || group.batch.samples() != options_.samples_per_prompt)
        return other_samples(file, step);
      const std::int64_t row[] = {0};
      Result<RolloutBatch> more = append_prompts(batch, group.batch, row);
      if (!more.ok()) return more.status().with_context(file.string());
      batch = std::move(*more);
    }
    Result<ObjectRef<RolloutBatch>> ref = batches_.put(batch);
    if (!ref.ok()) return ref.status();
    ahead.restored.push_back({.batch = std::move(*ref), .summary = summarize(batch)});
  }
  ahead_.push_back(std::move(ahead));
  return {};
}

}  // namespace rl
