// Partial rollouts: a step takes the prompts that finish first, the others go on with the weights
// that it makes (ADR 36).
#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "rl/train/worker_lists.h"
#include "rl/trainer.h"
#include "runtime/core/log.h"
#include "runtime/core/rest_of.h"

namespace rl {

using runtime::ObjectRef;
using runtime::Result;
using runtime::split;
using runtime::Status;

namespace {

std::vector<std::int64_t> shard_shares(const std::vector<PromptShard>& shards) {
  std::vector<std::int64_t> shares;
  for (const PromptShard& shard : shards)
    shares.push_back(static_cast<std::int64_t>(shard.prompts.size()));
  return shares;
}

}  // namespace

// As many batches are on their way as options say, besides the step's; at the end of training
// fewer.
Result<std::vector<std::vector<PromptBatch>>> Trainer::begin_prompts(std::int64_t step) {
  std::vector<std::vector<PromptBatch>> fresh(policy_.size());
  const std::int64_t last = std::min(step + options_.partial_rollouts->steps_ahead, total_steps_);
  for (; partial_.steps_begun < last; ++partial_.steps_begun) {
    Result<StepPrompts> prompts = feed_->next(partial_.steps_begun + 1);
    if (!prompts.ok()) return prompts.status();
    partial_.epoch = prompts->epoch;
    for (std::size_t worker = 0; worker < policy_.size(); ++worker) {
      fresh[worker].push_back(std::move(prompts->batches[worker]));
      for (RewardTask& task : prompts->tasks[worker])
        partial_.tasks[worker].push_back({.step = step, .task = std::move(task)});
    }
  }
  return fresh;
}

Result<Trainer::Drawn> Trainer::draw_partially(Metrics& metrics) {
  const std::int64_t step = steps_done_ + 1;
  if (partial_.begun.empty()) {
    partial_.tasks.resize(policy_.size());
    const Result<ObjectRef<std::vector<BegunPrompt>>> nothing =
        runtime_.put(std::vector<BegunPrompt>());
    if (!nothing.ok()) return nothing.status();
    partial_.begun.assign(policy_.size(), *nothing);
    partial_.steps_begun = steps_done_;
  }
  std::vector<PromptShard> shards =
      shard_prompts(options_.batch_prompts, options_.mini_batch_prompts,
                    static_cast<std::int64_t>(policy_.size()));
  const std::vector<std::int64_t> shares = shard_shares(shards);
  std::vector<PartialPlan> plans;
  for (std::size_t worker = 0; worker < policy_.size(); ++worker)
    plans.push_back(
        plan_partial(partial_.tasks[worker], shares[worker], step, *options_.partial_rollouts));
  const auto fresh = begin_prompts(step);
  if (!fresh.ok()) return fresh.status();
  auto parts = policy_.fetch(&PolicyActor::generate_partially, split(partial_.begun), split(*fresh),
                             split(plans), static_cast<std::uint64_t>(steps_done_));
  if (!parts.ok()) return parts.status();

  Drawn drawn{StepPrompts{.shards = std::move(shards),
                          .batches = {},
                          .tasks = std::vector<std::vector<RewardTask>>(policy_.size()),
                          .epoch = partial_.epoch},
              {},
              0};
  VersionSpans versions;
  double begun_anew = 0;
  for (std::size_t worker = 0; worker < policy_.size(); ++worker) {
    PartlyGenerated& part = (*parts)[worker];
    std::vector<BegunTask>& tasks = partial_.tasks[worker];
    for (const std::int64_t row : part.finished)
      drawn.prompts.tasks[worker].push_back(std::move(tasks[static_cast<std::size_t>(row)].task));
    for (auto row = part.finished.rbegin(); row != part.finished.rend(); ++row)
      tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(*row));
    partial_.begun[worker] = std::move(part.rest);
    drawn.generated.push_back(std::move(part.generated));
    versions.oldest.insert(versions.oldest.end(), part.oldest.begin(), part.oldest.end());
    versions.newest.insert(versions.newest.end(), part.newest.begin(), part.newest.end());
    begun_anew += static_cast<double>(plans[worker].start_anew);
  }
  add_staleness(metrics, versions, steps_done_);
  metrics["training/off_policy/begun_anew"] = begun_anew;
  return drawn;
}

// Called by the thread that writes.
Result<std::string> Trainer::encode_partial(runtime::Runtime& runtime,
                                            const PartialState& partial) {
  SavedRollouts saved{.steps_begun = partial.steps_begun, .tasks = partial.tasks, .prompts = {}};
  for (const ObjectRef<std::vector<BegunPrompt>>& begun : partial.begun) {
    Result<std::vector<BegunPrompt>> prompts = runtime.get(begun);
    if (!prompts.ok()) return prompts.status().with_context("responses that are on their way");
    saved.prompts.push_back(std::move(*prompts));
  }
  return encode_rollouts(saved);
}

Status Trainer::restore_partial(const std::filesystem::path& file, std::int64_t epoch) {
  partial_ = {.steps_begun = 0, .epoch = epoch, .tasks = {}, .begun = {}};
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    LOG(info,
        "{}: the checkpoint has no responses that were on their way; all are begun by its weights",
        file.string());
    return {};
  }
  const std::string bytes = runtime::rest_of(in);
  Result<SavedRollouts> saved = decode_rollouts(bytes);
  if (saved.ok())
    saved = deal_rollouts(
        std::move(*saved),
        shard_shares(shard_prompts(options_.batch_prompts, options_.mini_batch_prompts,
                                   static_cast<std::int64_t>(policy_.size()))));
  if (!saved.ok()) return saved.status().with_context(file.string());
  partial_.steps_begun = saved->steps_begun;
  partial_.tasks = std::move(saved->tasks);
  for (const std::vector<BegunPrompt>& prompts : saved->prompts) {
    Result<ObjectRef<std::vector<BegunPrompt>>> begun = runtime_.put(prompts);
    if (!begun.ok()) return begun.status();
    partial_.begun.push_back(std::move(*begun));
  }
  return {};
}

}  // namespace rl
