#include "rl/run/alarms.h"

#include <algorithm>
#include <cmath>

#include "rl/config/number_text.h"

namespace rl {
namespace {

using runtime::Result;

struct Alarm {
  const char* metric;
  const char* key;  // of the limit
  double limit;
  bool is_floor;  // bad below the limit instead of above
  const char* means;
  const char* cure;
};

std::vector<Alarm> alarms(const AlarmOptions& options) {
  const char* const slower =
      "lower actor_rollout_ref.actor.optim.lr or ppo_epochs, or set a smaller clip_ratio";
  const char* const closer =
      "raise actor_rollout_ref.actor.kl_loss_coef or algorithm.kl_ctrl.kl_coef, or lower "
      "actor_rollout_ref.actor.optim.lr";
  return {{"actor/ppo_kl", "ppo_kl_max", options.ppo_kl_max, false,
           "one step moves the policy too far", slower},
          {"actor/kl_loss", "reference_kl_max", options.reference_kl_max, false,
           "the policy runs away from the reference", closer},
          {"actor/reward_kl_penalty", "reference_kl_max", options.reference_kl_max, false,
           "the policy runs away from the reference", closer},
          {"actor/entropy", "entropy_min", options.entropy_min, true,
           "the entropy has collapsed: all responses to a prompt are the same, so that nothing new "
           "is tried",
           "raise actor_rollout_ref.actor.entropy_coeff or clip_ratio_high, or lower "
           "actor_rollout_ref.actor.optim.lr"},
          {"critic/score/equal_groups", "equal_scores_max", options.equal_scores_max, false,
           "responses to one prompt all score the same, so that they teach nothing",
           "the task may be too easy or too hard, or the reward constant; raise "
           "actor_rollout_ref.rollout.n, or set algorithm.filter_groups.enable=true"},
          {"response_length/clip_ratio", "truncated_max", options.truncated_max, false,
           "the length limit cuts the responses",
           "raise data.max_response_length, or see that the responses' end token is the model's"}};
}

}  // namespace

AlarmAction parse_alarm_action(const std::string& name) {
  return name == "none"   ? AlarmAction::kOff
         : name == "stop" ? AlarmAction::kStop
                          : AlarmAction::kWarn;
}

Result<AlarmOptions> AlarmOptions::from_config(const Config& config) {
  ConfigReader read(config);
  AlarmOptions options;
  options.action = parse_alarm_action(read.get_string("trainer.alarms.action"));
  options.steps = read.get_int("trainer.alarms.steps");
  options.ppo_kl_max = read.get_float("trainer.alarms.ppo_kl_max");
  options.reference_kl_max = read.get_float("trainer.alarms.reference_kl_max");
  options.entropy_min = read.get_float("trainer.alarms.entropy_min");
  options.equal_scores_max = read.get_float("trainer.alarms.equal_scores_max");
  options.truncated_max = read.get_float("trainer.alarms.truncated_max");
  if (!read.status().ok()) return read.status();
  return options;
}

std::vector<std::string> Alarms::observe(Metrics& metrics) {
  std::vector<std::string> messages;
  if (options_.action == AlarmAction::kOff) return messages;
  for (const Alarm& alarm : alarms(options_)) {
    const auto found = metrics.find(alarm.metric);
    if (found == metrics.end()) continue;
    const double value = found->second;
    const bool bad =
        std::isnan(value) || (alarm.is_floor ? value < alarm.limit : value > alarm.limit);
    std::int64_t& count = bad_steps_[alarm.metric];
    count = bad ? count + 1 : 0;
    if (count != options_.steps) continue;
    metrics[std::string("alarms/") + alarm.key] = 1.0;
    messages.push_back(std::string(alarm.means) + ": " + alarm.metric + " is " +
                       number_text(value, 4) + (alarm.is_floor ? ", below " : ", above ") +
                       number_text(alarm.limit, 4) + " (trainer.alarms." + alarm.key + "), for " +
                       std::to_string(count) + " step(s); " + alarm.cure);
  }
  return messages;
}

double equal_score_groups(const std::vector<double>& scores,
                          const std::vector<std::int64_t>& group_sizes) {
  std::int64_t groups = 0;
  std::int64_t equal = 0;
  auto begin = scores.begin();
  for (const std::int64_t size : group_sizes) {
    const auto end = begin + static_cast<std::ptrdiff_t>(size);
    if (size > 1) {
      ++groups;
      equal += std::all_of(begin, end, [&](double score) { return score == *begin; }) ? 1 : 0;
    }
    begin = end;
  }
  return groups == 0 ? -1.0 : static_cast<double>(equal) / static_cast<double>(groups);
}

}  // namespace rl
