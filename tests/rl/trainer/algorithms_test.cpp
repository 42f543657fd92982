// Every named algorithm trains from the command line: twenty steps of the toy task.
#include <cmath>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

// The metrics of each step of a run.
std::vector<nlohmann::json> steps_of(const fs::path& run) {
  std::vector<nlohmann::json> steps;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) steps.push_back(nlohmann::json::parse(line)["data"]);
  return steps;
}

struct Algorithm {
  const char* name;
  std::string options;
  const char* metric;  // that only a run of its kind has, or any
};

void PrintTo(const Algorithm& algorithm, std::ostream* out) { *out << algorithm.options; }

constexpr const char* kActor = "actor_rollout_ref.actor.";

std::vector<Algorithm> algorithms() {
  const std::string estimator = "algorithm.adv_estimator=";
  const std::string actor = kActor;
  const std::string gae = estimator + "gae algorithm.lam=0.95 critic.optim.lr=1e-3 ";
  return {
      {"ppo", gae + "trainer.critic_warmup=2", "critic/vf_loss"},
      {"vapo", gae + "algorithm.critic_lam=1.0 algorithm.adaptive_lam_alpha=0.5 trainer.critic_warmup=4 " + actor + "positive_nll_coef=0.1 " + actor + "clip_ratio_high=0.28", "actor/positive_nll"},
      {"pf_ppo", gae + "algorithm.use_pf_ppo=true algorithm.pf_ppo.reweight_method=pow", "critic/vf_loss"},
      {"grpo", estimator + "grpo " + actor + "use_kl_loss=true", "actor/kl_loss"},
      {"dr_grpo", estimator + "grpo algorithm.norm_adv_by_std_in_grpo=false " + actor + "loss_agg_mode=seq-mean-token-sum-norm", "actor/pg_loss"},
      {"grpo_passk", estimator + "grpo_passk", "actor/pg_loss"},
      {"dapo", estimator + "grpo " + actor + "clip_ratio_high=0.28 algorithm.filter_groups.enable=true data.gen_batch_size=6 algorithm.mask_truncated=true", "train/num_gen_batches"},
      {"gspo", estimator + "grpo " + actor + "policy_loss.loss_mode=gspo " + actor + "clip_ratio_low=3e-4 " + actor + "clip_ratio_high=4e-4", "actor/pg_loss"},
      {"cispo", estimator + "grpo " + actor + "policy_loss.loss_mode=cispo " + actor + "clip_ratio_low=10 " + actor + "clip_ratio_high=0.2", "actor/pg_loss"},
      {"gmpo", estimator + "grpo " + actor + "policy_loss.loss_mode=geo_mean " + actor + "clip_ratio=0.4", "actor/pg_loss"},
      {"clip_cov", estimator + "grpo " + actor + "policy_loss.loss_mode=clip_cov " + actor + "policy_loss.clip_cov_lb=0.1 " + actor + "policy_loss.clip_cov_ratio=0.1", "actor/pg_loss"},
      {"kl_cov", estimator + "grpo " + actor + "policy_loss.loss_mode=kl_cov " + actor + "policy_loss.kl_cov_ratio=0.1", "actor/pg_loss"},
      {"sapo", estimator + "grpo " + actor + "policy_loss.loss_mode=sapo", "actor/pg_loss"},
      {"dppo_tv", estimator + "grpo " + actor + "policy_loss.loss_mode=dppo_tv " + actor + "clip_ratio=0.1 " + actor + "clip_ratio_c=20", "actor/pg_loss"},
      {"dppo_kl", estimator + "grpo_vectorized " + actor + "policy_loss.loss_mode=dppo_kl " + actor + "clip_ratio=0.05", "actor/pg_loss"},
      {"dro", estimator + "grpo " + actor + "policy_loss.loss_mode=dro " + actor + "policy_loss.dro_beta=0.1", "actor/pg_loss"},
      {"reinforce", estimator + "rloo_vectorized algorithm.rollout_correction.bypass_mode=true algorithm.rollout_correction.loss_type=reinforce algorithm.rollout_correction.rollout_is=sequence", "actor/pg_loss"},
      {"optimal_token_baseline", estimator + "optimal_token_baseline " + actor + "calculate_sum_pi_squared=true", "critic/returns/mean"},
      {"tir_optimal_token_baseline", estimator + "tir_optimal_token_baseline algorithm.use_kl_in_reward=true", "critic/returns/mean"},
      {"codapo", estimator + "codapo +algorithm.codapo_top_k=2", "codapo/is_focused_step"},
      {"fire", estimator + "grpo +actor_rollout_ref.rollout.use_fire_sampling=true", "actor/pg_loss"},
      {"rloo", estimator + "rloo algorithm.use_kl_in_reward=true algorithm.kl_ctrl.type=adaptive algorithm.kl_ctrl.target_kl=0.01 algorithm.kl_ctrl.horizon=100", "actor/reward_kl_penalty_coeff"},
      {"gdpo", estimator + "gdpo reward.mixture=[{rule:letters,name:share},{rule:exact,name:whole}] algorithm.gdpo_reward_keys=[share,whole] algorithm.gdpo_reward_weights=[1,0.5]", "reward/whole"},
      {"opo", estimator + "opo", "actor/pg_loss"},
      {"gpg", estimator + "gpg " + actor + "policy_loss.loss_mode=gpg", "actor/pg_loss"},
      {"remax", estimator + "remax algorithm.use_kl_in_reward=true", "timing_s/gen_max"},
      {"reinforce_plus_plus", estimator + "reinforce_plus_plus algorithm.gamma=0.99 algorithm.use_kl_in_reward=true " + actor + "entropy_coeff=0.001", "critic/returns/mean"},
      {"reinforce_plus_plus_baseline", estimator + "reinforce_plus_plus_baseline", "actor/pg_loss"},
      {"moving_average", estimator + "reinforce_plus_plus algorithm.reward_baseline=true algorithm.normalize_reward=true", "critic/reward_baseline"},
      {"sgd", actor + "optim.optimizer=SGD +" + actor + "optim.override_optimizer_config.momentum=0.9", "actor/pg_loss"},
      {"muon", actor + "optim.optimizer=Muon " + actor + "optim.lr_scheduler_type=wsd", "actor/pg_loss"},
  };
}

class AlgorithmTest : public TrainerTest, public ::testing::WithParamInterface<Algorithm> {};

TEST_P(AlgorithmTest, TakesTwentyStepsFromTheCommandLine) {
  const Outcome run = train(GetParam().options + " actor_rollout_ref.actor.ppo_mini_batch_size=2 trainer.total_training_steps=20");
  ASSERT_EQ(run.code, 0) << run.output;
  const std::vector<nlohmann::json> steps = steps_of(folder_ / "run");
  ASSERT_EQ(steps.size(), 20u) << run.output;
  double gradients = 0.0;
  for (const nlohmann::json& step : steps) {
    for (const auto& [name, value] : step.items()) EXPECT_TRUE(std::isfinite(value.get<double>())) << name;
    gradients += step.value("actor/grad_norm", 0.0);
    EXPECT_EQ(step.value("actor/skipped_updates", 0.0), 0.0);
  }
  EXPECT_GT(gradients, 0.0);
  EXPECT_TRUE(steps.back().contains(GetParam().metric)) << steps.back().dump();
}

INSTANTIATE_TEST_SUITE_P(Named, AlgorithmTest, ::testing::ValuesIn(algorithms()), [](const auto& info) { return std::string(info.param.name); });

// What steps leave to the next ones besides weights: the KL controller, the reward's statistics, the place in the data after several rounds a step, and
// every optimizer's state.
TEST_F(TrainerTest, AlgorithmsResumeWithTheSameNumbers) {
  const std::string actor = kActor;
  for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
           {"controller", "algorithm.adv_estimator=reinforce_plus_plus algorithm.use_kl_in_reward=true algorithm.kl_ctrl.type=adaptive algorithm.kl_ctrl.horizon=50 "
                          "algorithm.reward_baseline=true algorithm.normalize_reward=true"},
           {"codapo", "algorithm.adv_estimator=codapo +algorithm.codapo_top_k=2"},
           {"otb", "algorithm.adv_estimator=optimal_token_baseline"},
           {"rounds", "algorithm.filter_groups.enable=true data.gen_batch_size=2 " + actor + "optim.optimizer=Muon"},
           {"sgd", actor + "optim.optimizer=SGD +" + actor + "optim.override_optimizer_config.momentum=0.9 algorithm.adv_estimator=rloo"}}) {
    SCOPED_TRACE(name);
    const std::string common = options + " trainer.save_freq=2 ";
    const fs::path whole = folder_ / name / "whole";
    const fs::path halves = folder_ / name / "halves";
    Outcome run = train(common + "trainer.total_training_steps=4 trainer.default_local_dir=" + whole.string());
    ASSERT_EQ(run.code, 0) << run.output;
    for (const int steps : {2, 4}) {
      run = train(common + "trainer.total_training_steps=" + std::to_string(steps) + " trainer.default_local_dir=" + halves.string());
      ASSERT_EQ(run.code, 0) << run.output;
    }
    EXPECT_NE(run.output.find("continuing after step 2"), std::string::npos) << run.output;
    EXPECT_EQ(numbers(whole), numbers(halves));
    for (const char* file : {"actor/huggingface/model.safetensors", "actor/optimizer.safetensors", "trainer.json"}) {
      EXPECT_EQ(read(whole / "global_step_4" / file), read(halves / "global_step_4" / file)) << file;
    }
  }
}

// DisCO learns where a prompt has right and wrong responses, which a policy that knows nothing does not give: it is taught a little first.
TEST_F(TrainerTest, DiscoLearnsFromRightAndWrongResponses) {
  const std::string actor = kActor;
  for (const char* score : {"logL", "Lratio"}) {
    SCOPED_TRACE(score);
    const fs::path run_folder = folder_ / score;
    const Outcome run = train("algorithm.adv_estimator=disco " + actor + "policy_loss.loss_mode=disco " + actor + "policy_loss.score_func=" + score + " " + actor +
                              "ppo_mini_batch_size=2 reward.rule=exact sft.steps=100 sft.lr=5e-3 trainer.total_training_steps=20 trainer.default_local_dir=" + run_folder.string());
    ASSERT_EQ(run.code, 0) << run.output;
    double gradients = 0.0;
    for (const nlohmann::json& step : steps_of(run_folder)) {
      gradients += step.value("actor/grad_norm", 0.0);
      for (const auto& [name, value] : step.items()) EXPECT_TRUE(std::isfinite(value.get<double>())) << name;
    }
    EXPECT_GT(gradients, 0.0);
  }
}

// A value pre-training as VAPO's: while only the critic learns, the policy's weights stay the same bits.
TEST_F(TrainerTest, ACriticLearnsBeforeThePolicyMoves) {
  const Outcome run = train("algorithm.adv_estimator=gae critic.optim.lr=1e-3 trainer.critic_warmup=3 trainer.total_training_steps=4 trainer.save_freq=1");
  ASSERT_EQ(run.code, 0) << run.output;
  const auto weights = [&](int step, const char* role) { return read(folder_ / "run" / ("global_step_" + std::to_string(step)) / role / "huggingface/model.safetensors"); };
  EXPECT_EQ(weights(1, "actor"), weights(2, "actor"));
  EXPECT_NE(weights(2, "actor"), weights(4, "actor"));
  EXPECT_NE(weights(1, "critic"), weights(2, "critic"));
}

TEST_F(TrainerTest, DynamicSamplingDrawsUntilTheBatchIsFullOrSaysWhyItIsNot) {
  // Greedy sampling in all but name: every group scores the same.
  Outcome run = train("algorithm.filter_groups.enable=true algorithm.filter_groups.max_num_gen_batches=2 actor_rollout_ref.rollout.top_k=1 trainer.total_training_steps=1");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.output.find("after 2 rounds of generation 4 of 4 prompts"), std::string::npos) << run.output;
  run = train("algorithm.filter_groups.enable=true data.gen_batch_size=2 trainer.total_training_steps=2");
  ASSERT_EQ(run.code, 0) << run.output;
  for (const nlohmann::json& step : steps_of(folder_ / "run")) EXPECT_GE(step["train/num_gen_batches"].get<double>(), 2.0);
}

// DAPO compares what was right, not how long it was: of equal accuracies nothing is learned, whatever the length took off.
TEST_F(TrainerTest, DynamicSamplingMayCompareAccuracies) {
  const fs::path reward = folder_ / "reward.py";
  fs::create_directories(folder_);
  std::ofstream(reward) << "def compute_score(data_source, solution_str, ground_truth, extra_info):\n    return {'score': 1.0, 'acc': 1.0}\n";
  const std::string options = "algorithm.filter_groups.enable=true algorithm.filter_groups.max_num_gen_batches=1 trainer.total_training_steps=1 data.max_response_length=8 reward.reward_manager.name=dapo "
                              "+reward.reward_kwargs.overlong_buffer_cfg.enable=true +reward.reward_kwargs.overlong_buffer_cfg.len=8 reward.custom_reward_function.path=" + reward.string() + " algorithm.filter_groups.metric=";
  for (const char* metric : {"acc", "score"}) {
    const Outcome equal = train(options + metric);
    EXPECT_EQ(equal.code, 1) << metric;
    EXPECT_NE(equal.output.find("after 1 rounds of generation 4 of 4 prompts"), std::string::npos) << equal.output;
  }
  const Outcome lengths = train(options + "seq_reward");
  EXPECT_TRUE(lengths.code == 0 || lengths.output.find("after 1 rounds of generation 4 of 4") == std::string::npos) << lengths.output;
}

// Workers have uneven shares; the step is that of one worker all the same.
TEST_F(TrainerTest, DynamicSamplingKeepsTheSamePromptsOnTwoWorkers) {
  const std::string options = "algorithm.filter_groups.enable=true data.gen_batch_size=3 actor_rollout_ref.actor.ppo_mini_batch_size=2 trainer.total_training_steps=3 trainer.cpus_per_worker=1 ";
  for (const char* workers : {"1", "2"}) {
    const Outcome run = train(options + "trainer.n_gpus_per_node=" + workers + " trainer.default_local_dir=" + (folder_ / workers).string());
    ASSERT_EQ(run.code, 0) << run.output;
  }
  const auto one = steps_of(folder_ / "1");
  const auto two = steps_of(folder_ / "2");
  ASSERT_EQ(one.size(), 3u);
  ASSERT_EQ(two.size(), 3u);
  for (std::size_t step = 0; step < one.size(); ++step) {
    for (const char* name : {"critic/score/mean", "response_length/mean", "train/num_gen_batches", "train/prompts_kept_ratio"}) {
      EXPECT_NEAR(one[step][name].get<double>(), two[step][name].get<double>(), 1e-9) << name << " of step " << step + 1;
    }
    EXPECT_NEAR(one[step]["actor/grad_norm"].get<double>(), two[step]["actor/grad_norm"].get<double>(), 1e-3 * one[step]["actor/grad_norm"].get<double>());
  }
}

// What is worked out over a mini-batch's prompts or a step's is the same however many workers have them.
TEST_F(TrainerTest, EstimatorsDoNotDependOnTheNumberOfWorkers) {
  const std::string actor = kActor;
  for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
           {"otb", "algorithm.adv_estimator=optimal_token_baseline"},
           {"codapo", "algorithm.adv_estimator=codapo"},
           {"disco", "algorithm.adv_estimator=disco " + actor + "policy_loss.loss_mode=disco reward.rule=exact sft.steps=100 sft.lr=5e-3"}}) {
    SCOPED_TRACE(name);
    std::vector<std::vector<nlohmann::json>> runs;
    for (const char* workers : {"1", "2"}) {
      const fs::path run_folder = folder_ / (name + workers);
      const Outcome run = train(options + " " + actor + "ppo_mini_batch_size=2 trainer.total_training_steps=2 trainer.cpus_per_worker=1 trainer.n_gpus_per_node=" + workers +
                                " trainer.default_local_dir=" + run_folder.string());
      ASSERT_EQ(run.code, 0) << run.output;
      runs.push_back(steps_of(run_folder));
    }
    ASSERT_EQ(runs[0].size(), runs[1].size());
    for (std::size_t step = 0; step < runs[0].size(); ++step) {
      for (const char* metric : {"critic/score/mean", "actor/grad_norm", "actor/pg_loss"}) {
        if (!runs[0][step].contains(metric)) continue;
        const double one = runs[0][step][metric].get<double>();
        EXPECT_NEAR(one, runs[1][step][metric].get<double>(), 1e-6 + 2e-3 * std::abs(one)) << metric << " of step " << step + 1;
      }
    }
  }
}

TEST_F(TrainerTest, ACheckpointOfAnotherOptimizerIsRefused) {
  Outcome run = train("trainer.total_training_steps=1 trainer.save_freq=1");
  ASSERT_EQ(run.code, 0) << run.output;
  run = train("trainer.total_training_steps=2 actor_rollout_ref.actor.optim.optimizer=Muon");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.output.find("optimizer.json: not the state of Muon"), std::string::npos) << run.output;
}

TEST_F(TrainerTest, AlgorithmsSayWhatTheyNeed) {
  for (const auto& [options, told] : std::vector<std::pair<std::string, std::string>>{
           {"algorithm.adv_estimator=rloo actor_rollout_ref.rollout.n=1", "actor_rollout_ref.rollout.n"},
           {"actor_rollout_ref.rollout.n=1000000000", "at most 1000000"},
           {"data.gen_batch_size=8", "algorithm.filter_groups.enable=true"},
           {"algorithm.adv_estimator=remax algorithm.reward_baseline=true", "algorithm.reward_baseline"},
           {"algorithm.adv_estimator=disco", "policy_loss.loss_mode"},
           {"actor_rollout_ref.actor.policy_loss.loss_mode=disco", "algorithm.adv_estimator"},
           {"algorithm.adv_estimator=codapo +algorithm.codapo_top_k=5", "algorithm.codapo_top_k"},
           {"algorithm.adv_estimator=codapo algorithm.filter_groups.enable=true", "algorithm.filter_groups.enable"},
           {"data.adarft.enable=true", "data.adarft needs a number `difficulty`"},
           {"actor_rollout_ref.actor.policy_loss.loss_mode=nonesuch", "nonesuch"}}) {
    const Outcome run = train(options + " trainer.total_training_steps=1");
    EXPECT_EQ(run.code, 1) << options;
    EXPECT_NE(run.output.find(told), std::string::npos) << run.output;
  }
}

}  // namespace
}  // namespace rl
