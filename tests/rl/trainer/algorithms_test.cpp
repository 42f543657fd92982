// Every named algorithm trains from the command line: twenty steps of the toy task.
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

struct Algorithm {
  const char* name;
  std::string options;
  const char* metric;  // that only a run of its kind has, or any
  const char* another = metric;
};

void PrintTo(const Algorithm& algorithm, std::ostream* out) { *out << algorithm.options; }

constexpr const char* kActor = "actor_rollout_ref.actor.";
constexpr const char* kOverlong =
    "reward.reward_kwargs.overlong_buffer_cfg.enable=true "
    "reward.reward_kwargs.overlong_buffer_cfg.len=2 "
    "reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=0.5 "
    "reward.reward_kwargs.overlong_buffer_cfg.log=true";

std::vector<Algorithm> policy_losses() {
  const std::string estimator = "algorithm.adv_estimator=";
  const std::string actor = kActor;
  return {
      {"gspo",
       estimator + "grpo " + actor + "policy_loss.loss_mode=gspo " + actor +
           "clip_ratio_low=3e-4 " + actor + "clip_ratio_high=4e-4",
       "actor/pg_loss"},
      {"cispo",
       estimator + "grpo " + actor + "policy_loss.loss_mode=cispo " + actor + "clip_ratio_low=10 " +
           actor + "clip_ratio_high=0.2",
       "actor/pg_loss"},
      {"gmpo",
       estimator + "grpo " + actor + "policy_loss.loss_mode=geo_mean " + actor + "clip_ratio=0.4",
       "actor/pg_loss"},
      {"clip_cov",
       estimator + "grpo " + actor + "policy_loss.loss_mode=clip_cov " + actor +
           "policy_loss.clip_cov_lb=0.1 " + actor + "policy_loss.clip_cov_ratio=0.1",
       "actor/pg_loss"},
      {"kl_cov",
       estimator + "grpo " + actor + "policy_loss.loss_mode=kl_cov " + actor +
           "policy_loss.kl_cov_ratio=0.1",
       "actor/pg_loss"},
      {"sapo", estimator + "grpo " + actor + "policy_loss.loss_mode=sapo", "actor/pg_loss"},
      {"dppo_tv",
       estimator + "grpo " + actor + "policy_loss.loss_mode=dppo_tv " + actor + "clip_ratio=0.1 " +
           actor + "clip_ratio_c=20",
       "actor/pg_loss"},
      {"dppo_kl",
       estimator + "grpo_vectorized " + actor + "policy_loss.loss_mode=dppo_kl " + actor +
           "clip_ratio=0.05",
       "actor/pg_loss"},
      {"dro",
       estimator + "grpo " + actor + "policy_loss.loss_mode=dro " + actor +
           "policy_loss.dro_beta=0.1",
       "actor/pg_loss"},
  };
}

std::vector<Algorithm> estimators() {
  const std::string estimator = "algorithm.adv_estimator=";
  const std::string actor = kActor;
  const std::string gae = estimator + "gae algorithm.lam=0.95 critic.optim.lr=1e-3 ";
  return {
      {"ppo", gae + "trainer.critic_warmup=2", "critic/vf_loss"},
      {"vapo",
       gae + "algorithm.critic_lam=1.0 algorithm.adaptive_lam_alpha=0.5 trainer.critic_warmup=4 " +
           actor + "positive_nll_coef=0.1 " + actor + "clip_ratio_high=0.28",
       "actor/positive_nll"},
      {"ppo_shared", gae + "actor_rollout_ref.model.custom_forward=true",
       "critic/vf_explained_var"},
      {"pf_ppo", gae + "algorithm.use_pf_ppo=true algorithm.pf_ppo.reweight_method=pow",
       "critic/vf_loss"},
      {"grpo", estimator + "grpo " + actor + "use_kl_loss=true", "actor/kl_loss"},
      {"dr_grpo",
       estimator + "grpo algorithm.norm_adv_by_std_in_grpo=false " + actor +
           "loss_agg_mode=seq-mean-token-sum-norm",
       "actor/pg_loss"},
      {"grpo_passk", estimator + "grpo_passk", "actor/pg_loss"},
      {"dapo",
       estimator + "grpo " + actor +
           "clip_ratio_high=0.28 algorithm.filter_groups.enable=true data.gen_batch_size=6 "
           "algorithm.mask_truncated=true " +
           kOverlong,
       "train/num_gen_batches", "reward/overlong_reward"},
      {"reinforce",
       estimator + "rloo_vectorized algorithm.rollout_correction.bypass_mode=true "
                   "algorithm.rollout_correction.loss_type=reinforce "
                   "algorithm.rollout_correction.rollout_is=sequence",
       "actor/pg_loss"},
      {"optimal_token_baseline",
       estimator + "optimal_token_baseline " + actor + "calculate_sum_pi_squared=true",
       "critic/returns/mean"},
      {"tir_optimal_token_baseline",
       estimator + "tir_optimal_token_baseline algorithm.use_kl_in_reward=true",
       "critic/returns/mean"},
      {"codapo", estimator + "codapo +algorithm.codapo_top_k=2", "codapo/is_focused_step"},
      {"fire", estimator + "grpo +actor_rollout_ref.rollout.use_fire_sampling=true",
       "actor/pg_loss"},
      {"rloo",
       estimator + "rloo algorithm.use_kl_in_reward=true algorithm.kl_ctrl.type=adaptive "
                   "algorithm.kl_ctrl.target_kl=0.01 algorithm.kl_ctrl.horizon=100",
       "actor/reward_kl_penalty_coeff"},
      {"gdpo",
       estimator + "gdpo reward.mixture=[{rule:letters,name:share},{rule:exact,name:whole}] "
                   "algorithm.gdpo_reward_keys=[share,whole] algorithm.gdpo_reward_weights=[1,0.5]",
       "reward/whole"},
      {"opo", estimator + "opo", "actor/pg_loss"},
      {"gpg", estimator + "gpg " + actor + "policy_loss.loss_mode=gpg", "actor/pg_loss"},
      {"remax", estimator + "remax algorithm.use_kl_in_reward=true", "timing_s/gen_max"},
      {"reinforce_plus_plus",
       estimator + "reinforce_plus_plus algorithm.gamma=0.99 algorithm.use_kl_in_reward=true " +
           actor + "entropy_coeff=0.001",
       "critic/returns/mean"},
      {"reinforce_plus_plus_baseline", estimator + "reinforce_plus_plus_baseline", "actor/pg_loss"},
      {"moving_average",
       estimator +
           "reinforce_plus_plus algorithm.reward_baseline=true algorithm.normalize_reward=true",
       "critic/reward_baseline"},
      {"sgd",
       actor + "optim.optimizer=SGD +" + actor + "optim.override_optimizer_config.momentum=0.9",
       "actor/pg_loss"},
      {"muon", actor + "optim.optimizer=Muon " + actor + "optim.lr_scheduler_type=wsd",
       "actor/pg_loss"},
  };
}

std::vector<Algorithm> algorithms() {
  std::vector<Algorithm> all = estimators();
  for (Algorithm& one : policy_losses()) all.push_back(std::move(one));
  return all;
}

class AlgorithmTest : public TrainerTest, public ::testing::WithParamInterface<Algorithm> {};

TEST_P(AlgorithmTest, TakesTwentyStepsFromTheCommandLine) {
  const Outcome run =
      train(GetParam().options +
            " actor_rollout_ref.actor.ppo_mini_batch_size=2 trainer.total_training_steps=20");
  ASSERT_EQ(run.code, 0) << run.output;
  const std::vector<nlohmann::json> steps = steps_of(folder_ / "run");
  ASSERT_EQ(steps.size(), 20u) << run.output;
  double gradients = 0.0;
  for (const nlohmann::json& step : steps) {
    for (const auto& [name, value] : step.items())
      EXPECT_TRUE(std::isfinite(value.get<double>())) << name;
    gradients += step.value("actor/grad_norm", 0.0);
    EXPECT_EQ(step.value("actor/skipped_updates", 0.0), 0.0);
  }
  EXPECT_GT(gradients, 0.0);
  for (const char* metric : {GetParam().metric, GetParam().another})
    EXPECT_TRUE(steps.back().contains(metric)) << metric << ": " << steps.back().dump();
}

INSTANTIATE_TEST_SUITE_P(Named, AlgorithmTest, ::testing::ValuesIn(algorithms()),
                         [](const auto& test) { return std::string(test.param.name); });

// A sample of a first step, from trainer.rollout_data_dir.
struct Sample {
  double score = 0.0;
  double advantage = 0.0;
  double tokens = 0.0;
  double logprobs = 0.0;  // their sum, of the policy that generated them
  bool truncated = false;
};

// What tells an algorithm from its neighbours. All runs begin with the same weights, taught a
// little, so that responses end at different places, some nowhere, and score differently. So they
// generate the same samples in their first step.
class DefinitionTest : public TrainerTest {
 protected:
  // The metrics of each step, without the warm start's.
  std::vector<nlohmann::json> steps(const std::string& name, const std::string& options) const {
    const Outcome run =
        train("sft.steps=20 sft.lr=5e-3 trainer.rollout_data_dir=" +
              (folder_ / name / "samples").string() +
              " trainer.default_local_dir=" + (folder_ / name).string() + " " + options);
    EXPECT_EQ(run.code, 0) << run.output;
    std::vector<nlohmann::json> steps = steps_of(folder_ / name);
    std::erase_if(steps,
                  [](const nlohmann::json& step) { return !step.contains("critic/score/mean"); });
    return steps;
  }

  // The only update of a run's only step: no ratio has left 1.
  nlohmann::json on_policy(const std::string& name, const std::string& options) const {
    const std::vector<nlohmann::json> all = steps(
        name, options + " trainer.total_training_steps=1 " + kActor + "ppo_mini_batch_size=4");
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? nlohmann::json() : all.front();
  }

  // In groups of four.
  std::vector<Sample> samples(const std::string& name) const {
    std::vector<Sample> samples;
    std::ifstream in(folder_ / name / "samples" / "1.jsonl");
    for (std::string line; std::getline(in, line);) {
      const auto json = nlohmann::json::parse(line);
      Sample& sample = samples.emplace_back();
      sample.score = json.at("score").get<double>();
      sample.advantage = json.at("advantages").at(0).get<double>();
      sample.tokens = static_cast<double>(json.at("tokens").size());
      for (const auto& logprob : json.at("logprobs")) sample.logprobs += logprob.get<double>();
      sample.truncated = sample.tokens == 4 && !json.at("tokens")
                                                    .back()
                                                    .get<std::string>()
                                                    .empty();  // the end is a token without a text
    }
    EXPECT_EQ(samples.size(), 16u) << name;
    return samples;
  }

  // The sum of what a function gives for each sample.
  template <class Function>
  static double sum(std::span<const Sample> samples, Function of) {
    return std::accumulate(
        samples.begin(), samples.end(), 0.0,
        [&](double so_far, const Sample& sample) { return so_far + of(sample); });
  }

  // One advantage a sample, from its group's scores and lengths.
  template <class Function>
  static void expect_advantages(const std::vector<Sample>& samples, Function of) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      EXPECT_NEAR(samples[i].advantage, of(std::span(samples).subspan(i / 4 * 4, 4), samples[i]),
                  1e-5)
          << i;
  }

  static double mean_score(std::span<const Sample> group) {
    return sum(group, [](const Sample& s) { return s.score; }) / static_cast<double>(group.size());
  }

  // GRPO's, Shao et al. 2024, arXiv:2402.03300.
  static double normalized(std::span<const Sample> group, const Sample& sample) {
    const double centre = mean_score(group);
    const double squares =
        sum(group, [&](const Sample& s) { return (s.score - centre) * (s.score - centre); });
    return (sample.score - centre) /
           (std::sqrt(squares / static_cast<double>(group.size() - 1)) + 1e-6);
  }

  static double weighted_advantage(const Sample& s) { return s.advantage * s.tokens; }
  static double token_count(const Sample& s) { return s.tokens; }
};

// What is logged of advantages is what samples are learned by, whitened or not.
TEST_F(DefinitionTest, LoggedAdvantagesAreThoseThatAreLearnedFrom) {
  for (const std::string estimator : {"gae", "reinforce_plus_plus", "grpo", "rloo"}) {
    SCOPED_TRACE(estimator);
    const std::vector<nlohmann::json> all =
        steps(estimator, "trainer.total_training_steps=1 algorithm.adv_estimator=" + estimator);
    ASSERT_EQ(all.size(), 1u);
    double sum = 0.0, largest = -1e9, smallest = 1e9, tokens = 0.0;
    std::ifstream in(folder_ / estimator / "samples" / "1.jsonl");
    for (std::string line; std::getline(in, line);) {
      const nlohmann::json sample = nlohmann::json::parse(line);
      const nlohmann::json& advantages = sample.at("advantages");
      const auto length = static_cast<double>(sample.at("tokens").size());
      for (const nlohmann::json& advantage : advantages) {
        const auto value = advantage.get<double>();
        sum += advantages.size() == 1 ? value * length : value;
        largest = std::max(largest, value);
        smallest = std::min(smallest, value);
      }
      tokens += length;
    }
    EXPECT_NEAR(all[0].at("critic/advantages/mean").get<double>(), sum / tokens, 1e-4);
    EXPECT_NEAR(all[0].at("critic/advantages/max").get<double>(), largest, 1e-4);
    EXPECT_NEAR(all[0].at("critic/advantages/min").get<double>(), smallest, 1e-4);
  }
}

// Where every ratio is 1: the value of each loss by hand, and which gradients are the same. GSPO,
// GMPO and SAPO are means over sequences of means over tokens, GRPO and CISPO means over tokens.
// CISPO's value has the log-prob in place of the ratio, and SAPO's gate is 2 / tau there.
TEST_F(DefinitionTest, OnPolicyLossesAreThoseOfTheirNames) {
  const std::string mode = std::string(kActor) + "policy_loss.loss_mode=";
  const std::string taus = std::string(" ") + kActor + "tau_pos=1 " + kActor + "tau_neg=2";
  const nlohmann::json grpo = on_policy("grpo", mode + "vanilla");
  const std::vector<Sample> generated = samples("grpo");
  expect_advantages(generated, normalized);
  const double tokens = sum(generated, token_count);
  const double sequences = static_cast<double>(generated.size());
  const double token_mean = -sum(generated, weighted_advantage) / tokens;
  EXPECT_GT(std::abs(token_mean), 1e-3)
      << "samples that tell a mean over tokens from one over sequences";
  EXPECT_NEAR(grpo.at("actor/pg_loss").get<double>(), token_mean, 1e-5);
  struct Case {
    const char* name;
    std::string options;
    double loss;
    bool means_over_sequences;
  };
  std::vector<double> over_tokens{grpo.at("actor/grad_norm").get<double>()},
      over_sequences;  // norms of gradients
  const double gated = -sum(generated, [](const Sample& s) {
    return s.advantage * (s.advantage > 0 ? 2.0 : 1.0);
  }) / sequences;
  for (const Case& one :
       {Case{"cispo", mode + "cispo",
             -sum(generated, [](const Sample& s) { return s.advantage * s.logprobs; }) / tokens,
             false},
        Case{"gspo", mode + "gspo " + kActor + "loss_agg_mode=seq-mean-token-mean",
             -sum(generated, [](const Sample& s) { return s.advantage; }) / sequences, true},
        Case{"gmpo", mode + "geo_mean",
             -sum(generated, [](const Sample& s) { return s.advantage; }) / sequences, true},
        Case{"sapo", mode + "sapo" + taus, gated, true}}) {
    SCOPED_TRACE(one.name);
    const nlohmann::json step = on_policy(one.name, one.options);
    EXPECT_EQ(read(folder_ / one.name / "samples" / "1.jsonl"),
              read(folder_ / "grpo" / "samples" / "1.jsonl"));
    EXPECT_NEAR(step.at("actor/pg_loss").get<double>(), one.loss, 1e-5);
    EXPECT_GT(std::abs(step.at("actor/pg_loss").get<double>() - token_mean), 1e-3);
    (one.means_over_sequences ? over_sequences : over_tokens)
        .push_back(step.at("actor/grad_norm").get<double>());
  }
  for (const double norm : over_tokens) EXPECT_NEAR(norm, over_tokens.front(), 1e-4 * norm);
  for (const double norm : over_sequences) EXPECT_NEAR(norm, over_sequences.front(), 1e-4 * norm);
  EXPECT_GT(std::abs(over_sequences.front() - over_tokens.front()), 1e-2 * over_tokens.front());
}

// Once ratios have left 1, with bounds that are narrow. GRPO and GSPO hold back only what would go
// further, CISPO every token outside. GMPO tells the two signs apart, and SAPO has no bounds.
TEST_F(DefinitionTest, OffPolicyLossesHoldBackWhatTheirNamesSay) {
  const std::string actor = kActor;
  const std::string narrow = actor + "clip_ratio=1e-3 " + actor + "clip_ratio_low=1e-3 " + actor +
                             "clip_ratio_high=1e-3 " + actor + "clip_ratio_c=1000 " + actor +
                             "ppo_mini_batch_size=1 trainer.total_training_steps=3 " + actor +
                             "policy_loss.loss_mode=";
  std::map<std::string, std::vector<nlohmann::json>> runs;
  for (const char* mode : {"vanilla", "gspo", "geo_mean", "cispo", "sapo"}) {
    runs[mode] = steps(mode, narrow + mode);
    ASSERT_EQ(runs[mode].size(), 3u) << mode;
  }
  // Of the first step, whose samples are the same.
  const auto first = [&](const char* mode, const char* metric) {
    return runs.at(mode).front().at(metric).get<double>();
  };
  for (const char* mode : {"vanilla", "gspo", "geo_mean", "cispo"})
    EXPECT_GT(first(mode, "actor/pg_clipfrac"), 0.0) << mode;
  for (const char* mode : {"vanilla", "gspo", "cispo", "sapo"})
    EXPECT_EQ(first(mode, "actor/pg_clipfrac_lower"), 0.0) << mode;
  EXPECT_EQ(first("sapo", "actor/pg_clipfrac"), 0.0);
  EXPECT_GT(first("geo_mean", "actor/pg_clipfrac_lower"), 0.0);
  EXPECT_GT(first("cispo", "actor/pg_clipfrac"), first("vanilla", "actor/pg_clipfrac"));
  for (const auto& [name, run] : runs) {
    for (const auto& [other, others] : runs) {
      if (name >= other) continue;
      for (const char* metric : {"actor/pg_loss", "actor/grad_norm"}) {
        const double size = std::abs(run.back().at(metric).get<double>());
        EXPECT_GT(
            std::abs(run.back().at(metric).get<double>() - others.back().at(metric).get<double>()),
            1e-4 * size)
            << metric << " of " << name << " and " << other;
      }
    }
  }
}

// Dr. GRPO, Liu et al. 2025, arXiv:2503.20783: no division by the group's standard deviation, nor
// by a response's length. OPO, Hao et al. 2025, arXiv:2505.23585: the baseline is weighted by
// lengths, so that each group's advantages add up to 0 over its tokens. DAPO: long responses lose
// some of their score, and truncated ones teach nothing.
TEST_F(DefinitionTest, CreditIsThatOfItsName) {
  const std::string actor = kActor;
  const nlohmann::json grpo = on_policy("grpo", "");
  const std::vector<Sample> generated = samples("grpo");

  const nlohmann::json dr_grpo =
      on_policy("dr_grpo", "algorithm.norm_adv_by_std_in_grpo=false " + actor +
                               "loss_agg_mode=seq-mean-token-sum-norm");
  const std::vector<Sample> centred = samples("dr_grpo");
  expect_advantages(centred, [](std::span<const Sample> group, const Sample& s) {
    return s.score - mean_score(group);
  });
  EXPECT_NEAR(dr_grpo.at("actor/pg_loss").get<double>(),
              -sum(centred, weighted_advantage) / (16.0 * 4.0), 1e-5);
  EXPECT_GT(
      std::abs(dr_grpo.at("actor/pg_loss").get<double>() - grpo.at("actor/pg_loss").get<double>()),
      1e-3);

  const nlohmann::json opo = on_policy("opo", "algorithm.adv_estimator=opo");
  expect_advantages(samples("opo"), [](std::span<const Sample> group, const Sample& s) {
    return s.score -
           sum(group, [](const Sample& o) { return o.score * o.tokens; }) / sum(group, token_count);
  });
  EXPECT_NEAR(opo.at("actor/pg_loss").get<double>(), 0.0, 1e-5);
  EXPECT_GT(
      std::abs(opo.at("actor/grad_norm").get<double>() - grpo.at("actor/grad_norm").get<double>()),
      1e-2);

  const nlohmann::json masked = on_policy("masked", "algorithm.mask_truncated=true");
  std::vector<Sample> whole = samples("masked");
  EXPECT_EQ(std::erase_if(whole, [](const Sample& s) { return s.truncated; }),
            static_cast<std::size_t>(
                std::lround(16.0 * masked.at("response_length/clip_ratio").get<double>())));
  EXPECT_LT(whole.size(), 16u) << "some are truncated";
  EXPECT_NEAR(masked.at("actor/pg_loss").get<double>(),
              -sum(whole, weighted_advantage) / sum(whole, token_count), 1e-5);
  EXPECT_GT(
      std::abs(masked.at("actor/pg_loss").get<double>() - grpo.at("actor/pg_loss").get<double>()),
      1e-3);

  // From two tokens on the score falls, by 0.5 at four.
  const nlohmann::json overlong = on_policy("overlong", kOverlong);
  const std::vector<Sample> shaped = samples("overlong");
  ASSERT_EQ(shaped.size(), generated.size());
  double taken = 0.0;
  for (std::size_t i = 0; i < generated.size(); ++i) {
    const double penalty = std::min(0.0, -0.25 * (generated[i].tokens - 2.0));
    EXPECT_NEAR(shaped[i].score, generated[i].score + penalty, 1e-6) << i;
    taken += penalty / 16.0;
  }
  EXPECT_LT(taken, 0.0);
  EXPECT_NEAR(overlong.at("reward/overlong_reward").get<double>(), taken, 1e-6);
}

// PF-PPO, Zhang et al. 2024, arXiv:2409.06957: with a power of the score only right responses are
// drawn again. PPO's advantages are whitened over all tokens, so that its loss is 0 where ratios
// are 1; those of right responses are high.
TEST_F(DefinitionTest, PfPpoLearnsFromRightResponses) {
  const std::string gae =
      "algorithm.adv_estimator=gae algorithm.lam=1.0 critic.optim.lr=1e-3 reward.rule=exact "
      "sft.steps=40";
  const nlohmann::json ppo = on_policy("ppo", gae);
  const nlohmann::json filtered =
      on_policy("pf_ppo", gae + " algorithm.use_pf_ppo=true algorithm.pf_ppo.reweight_method=pow");
  EXPECT_GT(ppo.at("critic/score/mean").get<double>(), 0.0);
  EXPECT_LT(ppo.at("critic/score/mean").get<double>(), 1.0);
  EXPECT_EQ(filtered.at("critic/score/mean"), ppo.at("critic/score/mean"));
  EXPECT_NEAR(ppo.at("actor/pg_loss").get<double>(), 0.0, 1e-5);
  EXPECT_LT(filtered.at("actor/pg_loss").get<double>(), -0.1);
  EXPECT_GT(std::abs(filtered.at("critic/vf_loss").get<double>() -
                     ppo.at("critic/vf_loss").get<double>()),
            1e-3);
}

// What steps leave to the next ones besides weights: the KL controller, the reward's statistics,
// and every optimizer's state. Also the place in the data after several rounds a step.
TEST_F(TrainerTest, AlgorithmsResumeWithTheSameNumbers) {
  const std::string actor = kActor;
  for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
           {"controller",
            "algorithm.adv_estimator=reinforce_plus_plus algorithm.use_kl_in_reward=true "
            "algorithm.kl_ctrl.type=adaptive algorithm.kl_ctrl.horizon=50 "
            "algorithm.reward_baseline=true algorithm.normalize_reward=true"},
           {"codapo", "algorithm.adv_estimator=codapo +algorithm.codapo_top_k=2"},
           {"otb", "algorithm.adv_estimator=optimal_token_baseline"},
           {"rounds", "algorithm.filter_groups.enable=true data.gen_batch_size=2 " + actor +
                          "optim.optimizer=Muon"},
           {"sgd",
            actor + "optim.optimizer=SGD +" + actor +
                "optim.override_optimizer_config.momentum=0.9 algorithm.adv_estimator=rloo"}}) {
    SCOPED_TRACE(name);
    const std::string common = options + " trainer.save_freq=2 ";
    const fs::path whole = folder_ / name / "whole";
    const fs::path halves = folder_ / name / "halves";
    Outcome run = train(
        common + "trainer.total_training_steps=4 trainer.default_local_dir=" + whole.string());
    ASSERT_EQ(run.code, 0) << run.output;
    for (const int steps : {2, 4}) {
      run = train(common + "trainer.total_training_steps=" + std::to_string(steps) +
                  " trainer.default_local_dir=" + halves.string());
      ASSERT_EQ(run.code, 0) << run.output;
    }
    EXPECT_NE(run.output.find("continuing after step 2"), std::string::npos) << run.output;
    EXPECT_EQ(numbers(whole), numbers(halves));
    for (const char* file :
         {"actor/huggingface/model.safetensors", "actor/optimizer.safetensors", "trainer.json"}) {
      EXPECT_EQ(read(whole / "global_step_4" / file), read(halves / "global_step_4" / file))
          << file;
    }
  }
}

// DisCO learns where a prompt has right and wrong responses, which a policy that knows nothing does
// not give: it is taught a little first.
TEST_F(TrainerTest, DiscoLearnsFromRightAndWrongResponses) {
  const std::string actor = kActor;
  for (const char* score : {"logL", "Lratio"}) {
    SCOPED_TRACE(score);
    const fs::path run_folder = folder_ / score;
    const Outcome run =
        train("algorithm.adv_estimator=disco " + actor + "policy_loss.loss_mode=disco " + actor +
              "policy_loss.score_func=" + score + " " + actor +
              "ppo_mini_batch_size=2 reward.rule=exact sft.steps=100 sft.lr=5e-3 "
              "trainer.total_training_steps=20 trainer.default_local_dir=" +
              run_folder.string());
    ASSERT_EQ(run.code, 0) << run.output;
    double gradients = 0.0;
    for (const nlohmann::json& step : steps_of(run_folder)) {
      gradients += step.value("actor/grad_norm", 0.0);
      for (const auto& [name, value] : step.items())
        EXPECT_TRUE(std::isfinite(value.get<double>())) << name;
    }
    EXPECT_GT(gradients, 0.0);
  }
}

// A value pre-training as VAPO's: while only the critic learns, the policy's weights stay the same
// bits.
TEST_F(TrainerTest, ACriticLearnsBeforeThePolicyMoves) {
  const Outcome run = train(
      "algorithm.adv_estimator=gae critic.optim.lr=1e-3 trainer.critic_warmup=3 "
      "trainer.total_training_steps=4 trainer.save_freq=1");
  ASSERT_EQ(run.code, 0) << run.output;
  const auto weights = [&](int step, const char* role) {
    return read(folder_ / "run" / ("global_step_" + std::to_string(step)) / role /
                "huggingface/model.safetensors");
  };
  EXPECT_EQ(weights(1, "actor"), weights(2, "actor"));
  EXPECT_NE(weights(2, "actor"), weights(4, "actor"));
  EXPECT_NE(weights(1, "critic"), weights(2, "critic"));
}

TEST_F(TrainerTest, DynamicSamplingDrawsUntilTheBatchIsFullOrSaysWhyItIsNot) {
  // Greedy sampling in all but name: every group scores the same.
  Outcome run = train(
      "algorithm.filter_groups.enable=true algorithm.filter_groups.max_num_gen_batches=2 "
      "actor_rollout_ref.rollout.top_k=1 trainer.total_training_steps=1");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.output.find("after 2 rounds of generation 4 of 4 prompts"), std::string::npos)
      << run.output;
  run = train(
      "algorithm.filter_groups.enable=true data.gen_batch_size=2 trainer.total_training_steps=2");
  ASSERT_EQ(run.code, 0) << run.output;
  for (const nlohmann::json& step : steps_of(folder_ / "run"))
    EXPECT_GE(step["train/num_gen_batches"].get<double>(), 2.0);
}

// DAPO compares what was right, not how long it was: of equal accuracies nothing is learned,
// whatever the length took off.
TEST_F(TrainerTest, DynamicSamplingMayCompareAccuracies) {
  const fs::path reward = folder_ / "reward.py";
  fs::create_directories(folder_);
  std::ofstream(reward) << "def compute_score(data_source, solution_str, ground_truth, "
                           "extra_info):\n    return {'score': 1.0, 'acc': 1.0}\n";
  const std::string options =
      "algorithm.filter_groups.enable=true algorithm.filter_groups.max_num_gen_batches=1 "
      "trainer.total_training_steps=1 data.max_response_length=8 reward.reward_manager.name=dapo "
      "+reward.reward_kwargs.overlong_buffer_cfg.enable=true "
      "+reward.reward_kwargs.overlong_buffer_cfg.len=8 reward.custom_reward_function.path=" +
      reward.string() + " algorithm.filter_groups.metric=";
  for (const char* metric : {"acc", "score"}) {
    const Outcome equal = train(options + metric);
    EXPECT_EQ(equal.code, 1) << metric;
    EXPECT_NE(equal.output.find("after 1 rounds of generation 4 of 4 prompts"), std::string::npos)
        << equal.output;
  }
  const Outcome lengths = train(options + "seq_reward");
  EXPECT_TRUE(lengths.code == 0 ||
              lengths.output.find("after 1 rounds of generation 4 of 4") == std::string::npos)
      << lengths.output;
}

// Workers have uneven shares; the step is that of one worker all the same.
TEST_F(TrainerTest, DynamicSamplingKeepsTheSamePromptsOnTwoWorkers) {
  const std::string options =
      "algorithm.filter_groups.enable=true data.gen_batch_size=3 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=2 trainer.total_training_steps=3 "
      "trainer.cpus_per_worker=1 ";
  for (const char* workers : {"1", "2"}) {
    const Outcome run = train(options + "trainer.n_gpus_per_node=" + workers +
                              " trainer.default_local_dir=" + (folder_ / workers).string());
    ASSERT_EQ(run.code, 0) << run.output;
  }
  const auto one = steps_of(folder_ / "1");
  const auto two = steps_of(folder_ / "2");
  ASSERT_EQ(one.size(), 3u);
  ASSERT_EQ(two.size(), 3u);
  for (std::size_t step = 0; step < one.size(); ++step) {
    for (const char* name : {"critic/score/mean", "response_length/mean", "train/num_gen_batches",
                             "train/prompts_kept_ratio"}) {
      EXPECT_NEAR(one[step][name].get<double>(), two[step][name].get<double>(), 1e-9)
          << name << " of step " << step + 1;
    }
    EXPECT_NEAR(one[step]["actor/grad_norm"].get<double>(),
                two[step]["actor/grad_norm"].get<double>(),
                1e-3 * one[step]["actor/grad_norm"].get<double>());
  }
}

// What is worked out over a mini-batch's prompts or a step's is the same however many workers have
// them.
TEST_F(TrainerTest, EstimatorsDoNotDependOnTheNumberOfWorkers) {
  const std::string actor = kActor;
  for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
           {"otb", "algorithm.adv_estimator=optimal_token_baseline"},
           {"codapo", "algorithm.adv_estimator=codapo"},
           {"disco",
            "algorithm.adv_estimator=disco " + actor +
                "policy_loss.loss_mode=disco reward.rule=exact sft.steps=100 sft.lr=5e-3"}}) {
    SCOPED_TRACE(name);
    std::vector<std::vector<nlohmann::json>> runs;
    for (const char* workers : {"1", "2"}) {
      const fs::path run_folder = folder_ / (name + workers);
      const Outcome run = train(options + " " + actor +
                                "ppo_mini_batch_size=2 trainer.total_training_steps=2 "
                                "trainer.cpus_per_worker=1 trainer.n_gpus_per_node=" +
                                workers + " trainer.default_local_dir=" + run_folder.string());
      ASSERT_EQ(run.code, 0) << run.output;
      runs.push_back(steps_of(run_folder));
    }
    ASSERT_EQ(runs[0].size(), runs[1].size());
    for (std::size_t step = 0; step < runs[0].size(); ++step) {
      for (const char* metric : {"critic/score/mean", "actor/grad_norm", "actor/pg_loss"}) {
        if (!runs[0][step].contains(metric)) continue;
        const double one = runs[0][step][metric].get<double>();
        EXPECT_NEAR(one, runs[1][step][metric].get<double>(), 1e-6 + 2e-3 * std::abs(one))
            << metric << " of step " << step + 1;
      }
    }
  }
}

TEST_F(TrainerTest, ACheckpointOfAnotherOptimizerIsRefused) {
  Outcome run = train("trainer.total_training_steps=1 trainer.save_freq=1");
  ASSERT_EQ(run.code, 0) << run.output;
  run = train("trainer.total_training_steps=2 actor_rollout_ref.actor.optim.optimizer=Muon");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.output.find("optimizer.json: not the state of Muon"), std::string::npos)
      << run.output;
}

TEST_F(TrainerTest, AlgorithmsSayWhatTheyNeed) {
  for (const auto& [options, told] : std::vector<std::pair<std::string, std::string>>{
           {"algorithm.adv_estimator=rloo actor_rollout_ref.rollout.n=1",
            "actor_rollout_ref.rollout.n"},
           {"actor_rollout_ref.rollout.n=1000000000", "must be from 1 to 1000000"},
           {"data.gen_batch_size=8", "algorithm.filter_groups.enable=true"},
           {"algorithm.adv_estimator=remax algorithm.reward_baseline=true",
            "algorithm.reward_baseline"},
           {"algorithm.adv_estimator=disco", "policy_loss.loss_mode"},
           {"actor_rollout_ref.actor.policy_loss.loss_mode=disco", "algorithm.adv_estimator"},
           {"algorithm.adv_estimator=codapo +algorithm.codapo_top_k=5", "algorithm.codapo_top_k"},
           {"algorithm.adv_estimator=codapo algorithm.filter_groups.enable=true",
            "algorithm.filter_groups.enable"},
           {"data.adarft.enable=true", "data.adarft needs a number `difficulty`"},
           {"actor_rollout_ref.actor.policy_loss.loss_mode=nonesuch", "nonesuch"}}) {
    const Outcome run = train(options + " trainer.total_training_steps=1");
    EXPECT_EQ(run.code, 1) << options;
    EXPECT_NE(run.output.find(told), std::string::npos) << run.output;
  }
}

}  // namespace
}  // namespace rl
