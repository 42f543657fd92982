#include "rl/run/rl/generated_partially.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kPartialFile = "partial.bin";

std::vector<std::int64_t> shard_shares(const std::vector<PromptShard>& shards) {
  std::vector<std::int64_t> shares;
  for (const PromptShard& shard : shards)
    shares.push_back(static_cast<std::int64_t>(shard.prompts.size()));
  return shares;
}

}  // namespace

std::vector<PromptShard> GeneratedPartially::shards() const {
  return shard_prompts(options_.batch_prompts, options_.mini_batch_prompts,
                       static_cast<std::int64_t>(calls_.workers()));
}

Status GeneratedPartially::open(std::int64_t steps_done) {
  on_their_way_.tasks.resize(calls_.workers());
  const Result<PartialCalls::PartialRef> nothing = calls_.put({});
  if (!nothing.ok()) return nothing.status();
  on_their_way_.partial.assign(calls_.workers(), *nothing);
  on_their_way_.steps_begun = steps_done;
  return {};
}

// As many batches are in flight as options say, besides the step's; at the end of training
// fewer.
Result<std::vector<std::vector<PromptBatch>>> GeneratedPartially::begin_prompts(std::int64_t step) {
  std::vector<std::vector<PromptBatch>> fresh(calls_.workers());
  const std::int64_t last = std::min(step + options_.partial.steps_ahead, options_.total_steps);
  for (; on_their_way_.steps_begun < last; ++on_their_way_.steps_begun) {
    Result<StepPrompts> prompts = prompts_.next(on_their_way_.steps_begun + 1, 0);
    if (!prompts.ok()) return prompts.status();
    on_their_way_.epoch = prompts->epoch;
    for (std::size_t worker = 0; worker < fresh.size(); ++worker) {
      fresh[worker].push_back(std::move(prompts->batches[worker]));
      for (RewardTask& task : prompts->tasks[worker])
        on_their_way_.tasks[worker].push_back({.step = step, .task = std::move(task)});
    }
  }
  return fresh;
}

Result<GeneratedSamples> GeneratedPartially::generate(const SampleRequest& request,
                                                      StepTimer& timer) {
  const std::int64_t step = request.step, steps_done = step - 1;
  if (on_their_way_.partial.empty()) {
    if (const Status opened = open(steps_done); !opened.ok()) return opened;
  }
  const std::size_t workers = calls_.workers();
  std::vector<PromptShard> now = shards();
  const std::vector<std::int64_t> shares = shard_shares(now);
  std::vector<PartialPlan> plans;
  for (std::size_t worker = 0; worker < workers; ++worker)
    plans.push_back(
        plan_partial(on_their_way_.tasks[worker], shares[worker], step, options_.partial));
  const auto fresh = begin_prompts(step);
  if (!fresh.ok()) return fresh.status();
  auto parts = calls_.generate_partially(on_their_way_.partial, *fresh, plans,
                                         static_cast<std::uint64_t>(steps_done));
  if (!parts.ok()) return parts.status();

  GeneratedSamples samples{.prompts = {.shards = std::move(now),
                                       .batches = {},
                                       .tasks = std::vector<std::vector<RewardTask>>(workers),
                                       .epoch = on_their_way_.epoch},
                           .generated = {}};
  VersionSpans versions;
  double begun_again = 0;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    PartlyGenerated& part = (*parts)[worker];
    std::vector<PartialTask>& tasks = on_their_way_.tasks[worker];
    for (const std::int64_t row : part.finished)
      samples.prompts.tasks[worker].push_back(std::move(tasks[static_cast<std::size_t>(row)].task));
    for (auto row = part.finished.rbegin(); row != part.finished.rend(); ++row)
      tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(*row));
    on_their_way_.partial[worker] = std::move(part.rest);
    samples.generated.push_back(std::move(part.generated));
    versions.oldest.insert(versions.oldest.end(), part.oldest.begin(), part.oldest.end());
    versions.newest.insert(versions.newest.end(), part.newest.begin(), part.newest.end());
    begun_again += static_cast<double>(plans[worker].restart);
  }
  add_staleness(samples.metrics, versions, steps_done);
  samples.metrics["training/off_policy/begun_anew"] = begun_again;
  return samples;
}

std::vector<StateFile> GeneratedPartially::state_files() const {
  return {{kPartialFile, [on_their_way = on_their_way_, &calls = calls_] {
             return encode(on_their_way, calls);
           }}};
}

Result<std::string> GeneratedPartially::encode(const OnTheirWay& on_their_way,
                                               const PartialCalls& calls) {
  SavedRollouts saved{
      .steps_begun = on_their_way.steps_begun, .tasks = on_their_way.tasks, .prompts = {}};
  for (const PartialCalls::PartialRef& partial : on_their_way.partial) {
    Result<std::vector<PartialPrompt>> prompts = calls.get(partial);
    if (!prompts.ok()) return prompts.status().with_context("partial responses");
    saved.prompts.push_back(std::move(*prompts));
  }
  return encode_rollouts(saved);
}

Status GeneratedPartially::restore(const std::filesystem::path& folder, const SavedAt& at) {
  on_their_way_ = {.steps_begun = 0, .epoch = at.epoch};
  const std::filesystem::path file = folder / kPartialFile;
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    LOG(info, "{}: the checkpoint has no partial responses; all start with its weights",
        file.string());
    return {};
  }
  const std::string bytes = runtime::rest_of(in);
  Result<SavedRollouts> saved = decode_rollouts(bytes);
  if (saved.ok()) saved = deal_rollouts(std::move(*saved), shard_shares(shards()));
  if (!saved.ok()) return saved.status().with_context(file.string());
  on_their_way_.steps_begun = saved->steps_begun;
  on_their_way_.tasks = std::move(saved->tasks);
  for (const std::vector<PartialPrompt>& prompts : saved->prompts) {
    Result<PartialCalls::PartialRef> partial = calls_.put(prompts);
    if (!partial.ok()) return partial.status();
    on_their_way_.partial.push_back(std::move(*partial));
  }
  return {};
}

}  // namespace rl
