#include "rl/run/rl/rl_plan.h"

#include <memory>
#include <system_error>
#include <utility>

#include "rl/checkpoint/resume.h"
#include "rl/optim/learner.h"
#include "rl/run/rl/credit_factory.h"
#include "rl/run/rl/rl_checkpoint.h"
#include "rl/worker/critic_worker.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

Status count_passes(RlPlan& plan) {
  plan.passes = {{"actor", plan.policy.epochs}, {"critic", plan.policy.epochs}};
  if (!plan.options.uses_critic()) return {};
  const Result<CriticOptions> critic = CriticOptions::from_config(plan.config);
  if (!critic.ok()) return critic.status();
  plan.passes["critic"] = critic->epochs;
  return {};
}

Status read_options(RlPlan& plan) {
  Result<TrainerOptions> options = TrainerOptions::from_config(plan.config);
  if (!options.ok()) return options.status();
  plan.options = std::move(*options);
  Result<SlotOptions> slots = SlotOptions::from_config(plan.config);
  if (!slots.ok()) return slots.status();
  plan.slots = std::move(*slots);
  Result<PolicyOptions> policy =
      PolicyOptions::from_config(plan.config, plan.slots.device);  // workers read it again
  if (!policy.ok()) return policy.status();
  plan.policy = std::move(*policy);
  if (const Status read = count_passes(plan); !read.ok()) return read;
  if (const auto uneven = plan.options.uneven_batches(plan.workers()); !uneven.empty())
    return runtime::invalid_argument(uneven.front());
  std::error_code error;
  plan.options.folder = fs::absolute(plan.options.folder, error);
  if (error) return runtime::errno_status(error.value(), "trainer.default_local_dir");
  Result<ProfileOptions> profile = ProfileOptions::from_config(plan.config, plan.options.folder);
  if (!profile.ok()) return profile.status();
  plan.profile = std::move(*profile);
  return {};
}

Status find_checkpoint(RlPlan& plan) {
  Result<std::optional<fs::path>> checkpoint =
      checkpoint_to_resume(plan.options.resume, plan.options.folder, plan.config.command());
  if (!checkpoint.ok()) return checkpoint.status();
  plan.checkpoint = std::move(*checkpoint);
  return plan.checkpoint ? check_rl_checkpoint(*plan.checkpoint, plan.config, plan.models.identity)
                         : Status();
}

Result<LrScheduleOptions> read_rate(const RlPlan& plan, const char* role,
                                    std::int64_t scheduled_steps, const std::string& key) {
  Result<LrScheduleOptions> rate = lr_schedule_from_config(plan.config, role, scheduled_steps);
  if (!rate.ok()) return rate;
  if (const auto note = schedule_note(*rate, plan.schedule.total_steps))
    LOG(warn, "{}.optim.{}", key, *note);
  return rate;
}

Status read_schedule(RlPlan& plan) {
  const std::int64_t steps_an_epoch =
      plan.feeds.training->batches_per_epoch() * plan.options.estimator->traits().steps_per_batch();
  const std::int64_t scheduled = plan.options.length.scheduled(steps_an_epoch);
  plan.schedule.total_steps = plan.options.length.last(steps_an_epoch);
  const std::int64_t profiled = plan.profile.steps.empty() ? 0 : *plan.profile.steps.begin();
  if (profiled > plan.schedule.total_steps)
    LOG(warn,
        "global_profiler.steps: the run has {} steps, and none of those that are to be profiled",
        plan.schedule.total_steps);
  Result<LrScheduleOptions> rate =
      read_rate(plan, kActorRole, scheduled, "actor_rollout_ref.actor");
  if (!rate.ok()) return rate.status();
  plan.schedule.policy_rate = *rate;
  if (!plan.options.uses_critic()) return {};
  rate = read_rate(plan, kCriticRole, scheduled, "critic");
  if (!rate.ok()) return rate.status();
  plan.schedule.critic_rate = *rate;
  return {};
}

Status open_feeds(RlPlan& plan) {
  Result<RunFeeds> feeds =
      RunFeeds::open(plan.config, plan.options, plan.models.policy, plan.workers());
  if (!feeds.ok()) return feeds.status();
  plan.feeds = std::move(*feeds);
  Status status = read_schedule(plan);
  if (status.ok()) status = plan.feeds.open_others(plan.config, plan.options);
  return status.ok() ? check_rewards(plan.models.reward_config, plan.feeds) : status;
}

}  // namespace

// On the heap: g++ 12 takes maps of a plan on the stack for unset.
Result<RlPlan> RlPlan::make(const Config& config) {
  const auto plan = std::make_unique<RlPlan>();
  plan->config = config;
  if (const Status read = read_options(*plan); !read.ok()) return read;
  Result<FolderLock> lock = FolderLock::acquire(plan->options.folder);
  if (!lock.ok()) return lock.status();
  plan->folder_lock = std::move(*lock);
  Result<RunModels> models = RunModels::find(config, plan->options, plan->policy);
  if (!models.ok()) return models.status();
  plan->models = std::move(*models);
  Status status = find_checkpoint(*plan);
  if (status.ok()) status = open_feeds(*plan);
  if (!status.ok()) return status;
  return std::move(*plan);
}

}  // namespace rl
