#include "rl/run/rl/partial_rollouts.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "rl/agent/agent_options.h"
#include "runtime/codec/codec.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

constexpr const char* kTrainerModeKey = "trainer.v1.trainer_mode";
constexpr const char* kColocateWarmupKey = "trainer.v1.colocate_async.num_warmup_batches";
constexpr const char* kOffPolicyThresholdKey = "trainer.v1.sampler.max_off_policy_threshold";
constexpr const char* kStrategy = "trainer.v1.sampler.max_off_policy_strategy";

constexpr std::uint32_t kRolloutsMagic = 0x53505232;  // "SPR2": partial rollouts, format 2

struct RolloutsFile {
  std::uint32_t magic = kRolloutsMagic;
  SavedRollouts rollouts;

  auto fields() { return std::tie(magic, rollouts); }
};

Status check_rollouts(const SavedRollouts& rollouts) {
  if (rollouts.tasks.size() != rollouts.prompts.size() || rollouts.steps_begun < 0)
    return runtime::invalid_argument("sizes that do not fit together");
  for (std::size_t worker = 0; worker < rollouts.tasks.size(); ++worker) {
    if (rollouts.tasks[worker].size() != rollouts.prompts[worker].size())
      return runtime::invalid_argument("sizes that do not fit together");
  }
  return {};
}

}  // namespace

Result<std::optional<PartialRolloutOptions>> PartialRolloutOptions::from_config(
    const Config& config) {
  ConfigReader read(config);
  const std::string mode = read.get_string(kTrainerModeKey);
  const std::int64_t warmup = read.get_int(kColocateWarmupKey);
  const std::string strategy = read.get_string(kStrategy);
  PartialRolloutOptions options;
  options.age_max = read.find_int(kOffPolicyThresholdKey);
  const bool filters = read.get_bool("algorithm.filter_groups.enable"),
             hybrid = read.get_bool("actor_rollout_ref.hybrid_engine");
  if (!read.status().ok()) return read.status();
  if (mode != "colocate_async") return std::optional<PartialRolloutOptions>();
  const std::string with = " with " + std::string(kTrainerModeKey) + "=colocate_async";
  if (warmup < 1)
    return config.out_of_range(kColocateWarmupKey, "at least 1: whole batches are in progress");
  if (strategy != "drop" && strategy != "wait")
    return config.out_of_range(kStrategy, "drop or wait");
  if (filters)
    return config.out_of_range(
        "algorithm.filter_groups.enable",
        "false" + with + ": which prompts finish is known only when they have");
  if (!hybrid)
    return config.out_of_range("actor_rollout_ref.hybrid_engine",
                               "true" + with + ", whose responses the policy's workers generate");
  const Result<std::optional<AgentOptions>> agent = AgentOptions::from_config(config);
  if (!agent.ok()) return agent.status();
  if (*agent) {
    return runtime::invalid_argument(
        "conversations of several turns and agent loops do not go" + with +
        ", since they cannot continue with new weights: set "
        "actor_rollout_ref.rollout.multi_turn.enable=false, "
        "and actor_rollout_ref.rollout.agent.* to what they are by default");
  }
  options.steps_ahead = warmup;
  options.waits_for_old = strategy == "wait";
  return std::optional(options);
}

PartialPlan plan_partial(const std::vector<PartialTask>& partial, std::int64_t prompts,
                         std::int64_t step, const PartialRolloutOptions& options) {
  PartialPlan plan{.prompts = prompts};
  if (!options.age_max) return plan;
  // Oldest first, so that those which are too old stand at the beginning.
  const auto older_than = [&](std::int64_t age) {
    return std::count_if(partial.begin(), partial.end(),
                         [&](const PartialTask& task) { return step - task.step + 1 > age; });
  };
  if (options.waits_for_old)
    plan.must_finish = older_than(*options.age_max - 1);
  else
    plan.restart = older_than(*options.age_max);
  return plan;
}

std::string encode_rollouts(const SavedRollouts& rollouts) {
  runtime::Encoder encoder;
  runtime::encode_value(encoder, RolloutsFile{.magic = kRolloutsMagic, .rollouts = rollouts});
  const runtime::Buffer bytes = encoder.to_buffer();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<SavedRollouts> decode_rollouts(std::string_view bytes) {
  runtime::Decoder decoder(
      runtime::Buffer::copy_of(std::as_bytes(std::span(bytes.data(), bytes.size()))));
  Result<RolloutsFile> file = runtime::decode_all<RolloutsFile>(decoder);
  if (!file.ok()) return file.status().with_context("partial rollouts");
  if (file->magic != kRolloutsMagic)
    return runtime::invalid_argument("partial rollouts: written by another version");
  if (const Status valid = check_rollouts(file->rollouts); !valid.ok())
    return valid.with_context("partial rollouts");
  return std::move(file->rollouts);
}

Result<SavedRollouts> deal_rollouts(SavedRollouts rollouts,
                                    const std::vector<std::int64_t>& shares) {
  const std::int64_t batch = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  std::int64_t total = 0;
  for (const std::vector<PartialTask>& tasks : rollouts.tasks)
    total += static_cast<std::int64_t>(tasks.size());
  if (batch < 1 || total % batch != 0) {
    return runtime::invalid_argument(
        std::to_string(total) +
        " prompts are in progress, which is not a whole number of batches of " +
        std::to_string(batch) + ": data.train_batch_size must stay as it was");
  }
  bool fits = shares.size() == rollouts.tasks.size();
  for (std::size_t worker = 0; fits && worker < shares.size(); ++worker)
    fits = static_cast<std::int64_t>(rollouts.tasks[worker].size()) ==
           shares[worker] * (total / batch);
  if (fits) return rollouts;

  struct Item {
    PartialTask task;
    PartialPrompt prompt;
  };
  std::vector<Item> all;
  for (std::size_t worker = 0; worker < rollouts.tasks.size(); ++worker) {
    for (std::size_t i = 0; i < rollouts.tasks[worker].size(); ++i)
      all.push_back({std::move(rollouts.tasks[worker][i]), std::move(rollouts.prompts[worker][i])});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Item& a, const Item& b) { return a.task.step < b.task.step; });
  SavedRollouts dealt{.steps_begun = rollouts.steps_begun,
                      .tasks = std::vector<std::vector<PartialTask>>(shares.size()),
                      .prompts = std::vector<std::vector<PartialPrompt>>(shares.size())};
  std::size_t next = 0;
  while (next < all.size()) {
    for (std::size_t worker = 0; worker < shares.size(); ++worker) {
      for (std::int64_t i = 0; i < shares[worker]; ++i, ++next) {
        dealt.tasks[worker].push_back(std::move(all[next].task));
        dealt.prompts[worker].push_back(std::move(all[next].prompt));
      }
    }
  }
  return dealt;
}

}  // namespace rl
