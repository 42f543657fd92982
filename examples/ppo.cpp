// PPO as a user writes it: the whole data flow of a step is ppo_step() below, one call to a group
// of workers a line. Samples, log-probs and estimates go from worker to worker by reference; the
// controller holds the references and a number a sample.
//
//   build/release/bin/ppo [--address HOST:PORT] [steps] [key=value ...]
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "rl/loop.h"
#include "runtime/runtime.h"

using namespace rl;
using runtime::Result;
using runtime::split;
using runtime::Status;

struct Roles {
  WorkerGroup<PolicyActor> policy;
  WorkerGroup<CriticActor> critic;
  WorkerGroup<ReferenceActor> reference;
  WorkerGroup<RewardActor> reward;
};

constexpr double kKlCoefficient = 0.01;

Result<double> ppo_step(const Roles& roles, PromptFeed& feed, std::int64_t step) {
  const Result<StepPrompts> prompts = feed.next(step);
  if (!prompts.ok()) return prompts.status();
  const auto generated = roles.policy.fetch(&PolicyActor::generate, split(prompts->batches), false);
  if (!generated.ok()) return generated.status();
  const auto samples = select(*generated, &Generated::batch);
  const auto tokens = tokens_by_sample(select(*generated, &Generated::summary));

  const auto references =
      roles.reference.fetch(&ReferenceActor::score, split(samples),
                            split(plan_scoring(tokens, roles.reference.pass_limits())));
  if (!references.ok()) return references.status();
  const auto reports =
      roles.reward.fetch(&RewardActor::score, split(samples), split(prompts->tasks));
  if (!reports.ok()) return reports.status();
  const auto scores = select(*reports, &RewardReport::scores);

  // Values and advantages; the KL to the reference comes off each token's reward.
  const auto passes = plan_scoring(tokens, roles.critic.pass_limits());
  std::vector<EstimateTask> tasks;
  for (const std::vector<double>& part : scores)
    tasks.push_back({.scores = part,
                     .baselines = {},
                     .kl_coefficient = kKlCoefficient,
                     .micro_batches = passes[tasks.size()]});
  const auto estimated =
      roles.critic.fetch(&CriticActor::estimate, split(samples),
                         split(select(*references, &Referenced::logprobs)), split(tasks));
  if (!estimated.ok()) return estimated.status();
  const auto estimates = select(*estimated, &Estimated::estimates);

  EstimateSummary all;
  for (const Estimated& part : *estimated) all.add(part.summary);
  std::vector<std::vector<std::int64_t>> lengths;
  for (const Generated& part : *generated) lengths.push_back(part.summary.response_tokens);
  auto parts = plan_mini_batches(prompts->shards, 4, lengths);
  add_micro_batches(parts, tokens, roles.policy.pass_limits());  // as the critic's
  std::vector<UpdatePlan> plans;
  for (const auto& mini_batches : parts) {
    plans.push_back({.advantages = {},
                     .mini_batches = mini_batches,
                     .learning_rate = 1e-3,
                     .scaling = AdvantageScaling::whitening(all.advantages)});
  }
  const auto learned =
      roles.critic.fetch(&CriticActor::update, split(samples), split(estimates), split(plans));
  if (!learned.ok()) return learned.status();
  const std::vector<std::vector<float>> no_kl_loss(lengths.size());
  const auto updated = roles.policy.fetch(&PolicyActor::update, split(samples), split(no_kl_loss),
                                          split(plans), split(estimates), split(no_kl_loss));
  if (!updated.ok()) return updated.status();
  const std::vector<double> flat = join<double>(scores);
  return std::accumulate(flat.begin(), flat.end(), 0.0) / static_cast<double>(flat.size());
}

// A group of every role on the same slots, which they use in turn.
Result<Roles> start(runtime::Runtime& runtime, const Config& config, const std::string& model) {
  const Result<SlotOptions> wanted = SlotOptions::from_config(config);
  if (!wanted.ok()) return wanted.status();
  const Result<WorkerSlots> slots = reserve_slots(runtime, *wanted);
  if (!slots.ok()) return slots.status();
  const auto spec = [&](const std::string& role) {
    return WorkerSpec{.config = config.serialize(),
                      .model = model,
                      .model_name = model,
                      .adapter = {},
                      .group = role + "-" + slots->group.hex()};
  };
  auto policy = WorkerGroup<PolicyActor>::spawn(runtime, *slots, /*reserves=*/true, spec("policy"));
  if (!policy.ok()) return policy.status();
  auto critic = WorkerGroup<CriticActor>::spawn(runtime, *slots, false, spec("critic"));
  if (!critic.ok()) return critic.status();
  auto reference = WorkerGroup<ReferenceActor>::spawn(runtime, *slots, false, spec("reference"));
  if (!reference.ok()) return reference.status();
  auto reward = WorkerGroup<RewardActor>::spawn(runtime, *slots, false, spec("reward"));
  if (!reward.ok()) return reward.status();
  return Roles{*policy, *critic, *reference, *reward};
}

Status driver_main(runtime::Runtime& runtime) {
  const auto& arguments = runtime.arguments();
  const std::int64_t steps = arguments.size() > 1 ? std::atoll(arguments[1].c_str()) : 60;
  ConfigSources sources{
      .file = {},
      .overrides = {"algorithm.adv_estimator=gae", "algorithm.lam=0.95", "data.dataset_name=toy",
                    "data.toy.letters=4", "data.toy.length=2", "data.max_prompt_length=32",
                    "data.max_response_length=6", "actor_rollout_ref.rollout.n=4",
                    "actor_rollout_ref.model.path=toy"}};
  for (std::size_t i = 2; i < arguments.size(); ++i) sources.overrides.push_back(arguments[i]);
  const Result<Config> config = Config::load(sources);
  if (!config.ok()) return config.status();
  const auto model = resolve_model(*config, "actor_rollout_ref.model.path", /*seed=*/1);
  if (!model.ok()) return model.status();
  const Result<Roles> roles = start(runtime, *config, model->string());
  if (!roles.ok()) return roles.status();
  const auto rows = dataset_options(*config, Split::kTrain);
  if (!rows.ok()) return rows.status();
  const PromptFeedOptions batches{.model = *model,
                                  .batch_prompts = 16,
                                  .mini_batch_prompts = 8,
                                  .workers = static_cast<std::int64_t>(roles->policy.size())};
  const auto feed = PromptFeed::create(*config, **rows, batches);
  if (!feed.ok()) return feed.status();
  for (std::int64_t step = 1; step <= steps; ++step) {
    const Result<double> score = ppo_step(*roles, **feed, step);
    if (!score.ok()) return score.status();
    if (step % 5 == 0 || step == steps)
      std::printf("step %3lld  mean score %.3f\n", static_cast<long long>(step), *score);
  }
  return {};
}

int main(int argc, char** argv) {
  runtime::Runtime runtime(argc, argv);
  register_training_actors(runtime);
  return runtime.run(driver_main);
}
