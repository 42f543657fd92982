// Options of policy, schedule and slots as read from a configuration.
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "rl/actor/actor_setup.h"
#include "rl/actor/worker_slots.h"
#include "rl/config/stage_keys.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/team_keys.h"
#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

Config config(std::vector<std::string> overrides = {}) {
  overrides.push_back("actor_rollout_ref.model.path=/model");
  auto config = Config::load({.file = std::nullopt, .overrides = overrides});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return std::move(*config);
}

/// What is said of a command line: of a value by itself when it is loaded, else by `read`.
template <class Read>
runtime::Status complaint(std::vector<std::string> overrides, Read read) {
  overrides.push_back("actor_rollout_ref.model.path=/model");
  const auto loaded = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
  return loaded.ok() ? read(*loaded).status() : loaded.status();
}

std::string key_of(const std::string& override_text) {
  return override_text.substr(0, override_text.find('='));
}

TEST(PolicyOptions, TakesVerlsDefaults) {
  const auto options = PolicyOptions::from_config(config());
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  EXPECT_EQ(options->training.samples, 1);
  EXPECT_EQ(options->training.temperature, 1.0F);
  EXPECT_EQ(options->validation.temperature, 0.0F);
  EXPECT_EQ(options->objective.clip.low, 0.2);
  EXPECT_EQ(options->objective.clip.high, 0.2);
  EXPECT_EQ(options->objective.clip.dual, 3.0);
  EXPECT_EQ(options->objective.aggregation, AggregationMode::kTokenMean);
  EXPECT_EQ(options->objective.kl_penalty.estimator, KlEstimator::kK3);
  EXPECT_EQ(options->learner.adamw.weight_decay, 0.01F);
  EXPECT_EQ(options->learner.grad_norm_max, 1.0);
  EXPECT_EQ(options->positions_max, 1024);
  EXPECT_GT(options->micro_batch.tokens_max, 0);
}

// As verl's servers do, which do not read do_sample.
TEST(PolicyOptions, AValidationDrawsAtTheTemperatureThatIsSet) {
  const std::string section = "actor_rollout_ref.rollout.val_kwargs.";
  EXPECT_EQ(
      PolicyOptions::from_config(config({section + "temperature=0.6"}))->validation.temperature,
      0.6F);
  EXPECT_EQ(
      PolicyOptions::from_config(config({section + "do_sample=true"}))->validation.temperature,
      0.0F);
  EXPECT_EQ(
      PolicyOptions::from_config(config({section + "temperature=0.6", section + "do_sample=false"}))
          ->validation.temperature,
      0.0F);
}

TEST(PolicyOptions, ReadsPrecision) {
  EXPECT_FALSE(PolicyOptions::from_config(config())->bf16);
  EXPECT_TRUE(
      PolicyOptions::from_config(config({"actor_rollout_ref.actor.fsdp_config.dtype=bfloat16"}))
          ->bf16);
  EXPECT_TRUE(CriticOptions::from_config(config({"critic.fsdp.dtype=bf16"}))->bf16);
  EXPECT_TRUE(
      CriticOptions::from_config(config({"critic.model.enable_gradient_checkpointing=true"}))
          ->recompute_layers);
  const auto replayed = PolicyOptions::from_config(
      config({"actor_rollout_ref.actor.fsdp_config.dtype=bfloat16", "sample_store.enable=true"}));
  EXPECT_EQ(replayed.status().code(), runtime::ErrorCode::kUnimplemented);
}

TEST(PolicyOptions, SamplesOfEarlierWeightsNeedTheirOwnLogProbs) {
  const std::string bf16 = "actor_rollout_ref.actor.fsdp_config.dtype=bfloat16";
  for (const char* older :
       {"sample_store.enable=true", "actor_rollout_ref.hybrid_engine=false",
        "trainer.v1.trainer_mode=separate_async", "trainer.v1.trainer_mode=colocate_async"}) {
    const auto refused = PolicyOptions::from_config(config({bf16, older}));
    EXPECT_EQ(refused.status().code(), runtime::ErrorCode::kUnimplemented) << older;
    EXPECT_NE(refused.status().message().find(older), std::string::npos)
        << refused.status().message();
    const auto exact = PolicyOptions::from_config(config({older}));
    ASSERT_TRUE(exact.ok()) << exact.status().to_string();
    EXPECT_TRUE(exact->samples_are_older) << older;
  }
  EXPECT_TRUE(
      PolicyOptions::from_config(config({bf16, "trainer.v1.trainer_mode=colocate_sync"})).ok());
}

TEST(PolicyOptions, ReadsAdaptersAndSharedCritics) {
  EXPECT_FALSE(PolicyOptions::from_config(config())->adapter.has_value());
  EXPECT_FALSE(PolicyOptions::from_config(config())->critic.has_value());
  const auto adapted = PolicyOptions::from_config(
      config({"actor_rollout_ref.model.lora_rank=8",
              "actor_rollout_ref.model.target_modules=[q_proj,v_proj]"}));
  ASSERT_TRUE(adapted.ok()) << adapted.status().to_string();
  EXPECT_EQ(adapted->adapter->lora.rank, 8);
  EXPECT_EQ(adapted->adapter->lora.alpha, 16.0);
  EXPECT_EQ(adapted->adapter->lora.target_modules, (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_EQ(PolicyOptions::from_config(config({"actor_rollout_ref.model.lora.rank=4"}))
                ->adapter->lora.rank,
            4);  // Megatron's name
  const auto shared =
      PolicyOptions::from_config(config({"actor_rollout_ref.model.custom_forward=true",
                                         "algorithm.adv_estimator=gae", "algorithm.lam=0.9"}));
  ASSERT_TRUE(shared.ok()) << shared.status().to_string();
  EXPECT_EQ(shared->estimates.gae.lambda, 0.9);
  EXPECT_EQ(shared->critic->objective.clip, 0.5);
  EXPECT_EQ(shared->estimates.estimator->name(), "gae");

  const auto told = [](std::vector<std::string> overrides) {
    return complaint(std::move(overrides),
                     [](const Config& config) { return PolicyOptions::from_config(config); })
        .message();
  };
  EXPECT_NE(told({"actor_rollout_ref.model.custom_forward=true"})
                .find("algorithm.adv_estimator=grpo has no critic"),
            std::string::npos);
  EXPECT_NE(told({"actor_rollout_ref.model.lora_rank=-1"}).find("lora_rank"), std::string::npos);
  EXPECT_NE(
      told({"actor_rollout_ref.model.lora_rank=4", "actor_rollout_ref.model.lora_dropout=1.5"})
          .find("dropout"),
      std::string::npos);
  EXPECT_NE(told({"actor_rollout_ref.model.custom_forward=true", "algorithm.adv_estimator=gae",
                  "actor_rollout_ref.model.lora_rank=4"})
                .find("custom_forward"),
            std::string::npos);
}

TEST(CriticOptions, TakesTheActorsSizesAndNamesWhatIsOutOfRange) {
  const auto options = CriticOptions::from_config(
      config({"algorithm.adv_estimator=gae", "actor_rollout_ref.actor.ppo_epochs=3"}));
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  EXPECT_EQ(options->epochs, 3);
  EXPECT_EQ(options->learner.adamw.weight_decay, 0.01F);
  for (const char* wrong :
       {"critic.ppo_epochs=0", "critic.cliprange_value=0", "critic.ppo_mini_batch_size=7",
        "critic.optim.weight_decay=-1", "algorithm.gamma=1.5", "algorithm.lam=-0.5"}) {
    const runtime::Status refused =
        complaint({wrong}, [](const Config& config) { return CriticOptions::from_config(config); });
    EXPECT_EQ(refused.code(), runtime::ErrorCode::kInvalidArgument) << wrong;
    EXPECT_NE(refused.message().find(key_of(wrong)), std::string::npos) << refused.message();
  }
}

TEST(PolicyOptions, AMicroBatchInSamplesReplacesTheOneInTokens) {
  const auto options = PolicyOptions::from_config(
      config({"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2"}));
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->micro_batch, (MicroBatchLimits{.samples_max = 2, .tokens_max = 0}));
}

TEST(PolicyOptions, APassHasAsManyTokensAsTheKeySaysAndOnACpuNoMoreThanPay) {
  const auto limits = [](const std::string& device, std::vector<std::string> overrides) {
    return PolicyOptions::from_config(config(std::move(overrides)), device)->micro_batch;
  };
  const auto tokens = [](std::int64_t count) {
    return MicroBatchLimits{.samples_max = 0, .tokens_max = count};
  };
  const std::string dynamic = "actor_rollout_ref.actor.use_dynamic_bsz=true";
  const std::string size = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=";
  EXPECT_EQ(limits("", {}), tokens(2048));
  EXPECT_EQ(limits("cuda", {}), tokens(16384));
  EXPECT_EQ(limits("cuda", {size + "8192"}), tokens(16384))
      << "only read where passes are filled by tokens";
  EXPECT_EQ(limits("cuda", {dynamic}), tokens(16384));
  EXPECT_EQ(limits("cuda:0", {dynamic, size + "8192"}), tokens(8192));
  EXPECT_EQ(limits("cuda", {dynamic, "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2"}),
            tokens(16384))
      << "verl does not read the number of samples then, either";
  EXPECT_EQ(limits("cpu", {dynamic, size + "8192"}), tokens(2048));
  EXPECT_EQ(limits("", {dynamic, size + "300"}), tokens(300));
}

TEST(PolicyOptions, PassesThatOnlyScoreHaveKeysOfTheirOwn) {
  const auto scoring = [](const std::string& role, const std::string& device,
                          std::vector<std::string> overrides) {
    return *scoring_batch_from_config(config(std::move(overrides)), role, device);
  };
  const auto of = [](std::int64_t samples, std::int64_t tokens) {
    return MicroBatchLimits{.samples_max = samples, .tokens_max = tokens};
  };
  const std::string dynamic = "actor_rollout_ref.actor.use_dynamic_bsz=true";
  for (const char* role : {kRolloutRole, kReferenceRole}) {
    const std::string section = std::string(role) + ".log_prob_";
    EXPECT_EQ(scoring(role, "cuda", {}), of(0, 16384));
    EXPECT_EQ(
        scoring(role, "cuda", {dynamic, "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=9000"}),
        of(0, 9000))
        << "by its reference";
    EXPECT_EQ(scoring(role, "cuda", {dynamic, section + "max_token_len_per_gpu=30000"}),
              of(0, 30000));
    EXPECT_EQ(scoring(role, "", {dynamic, section + "max_token_len_per_gpu=30000"}), of(0, 2048));
    EXPECT_EQ(scoring(role, "cuda", {section + "micro_batch_size_per_gpu=32"}), of(32, 0));
    EXPECT_EQ(scoring(role, "", {section + "micro_batch_size_per_gpu=32"}), of(32, 2048))
        << "the result does not depend on it, and more only costs memory";
    EXPECT_EQ(scoring(role, "", {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=3"}),
              of(3, 0))
        << "as the policy's own passes";
  }
  const auto critic = CriticOptions::from_config(
      config({dynamic, "critic.forward_max_token_len_per_gpu=65536"}), "cuda");
  ASSERT_TRUE(critic.ok()) << critic.status().to_string();
  EXPECT_EQ(critic->micro_batch, of(0, 32768));
  EXPECT_EQ(critic->scoring_batch, of(0, 65536));
  EXPECT_EQ(CriticOptions::from_config(
                config({"critic.ppo_max_token_len_per_gpu=700", "critic.use_dynamic_bsz=true"}))
                ->scoring_batch,
            of(0, 700));
}

TEST(PolicyOptions, NamesTheKeyThatIsOutOfRange) {
  for (const char* wrong :
       {"actor_rollout_ref.rollout.n=0", "actor_rollout_ref.rollout.temperature=0",
        "actor_rollout_ref.actor.clip_ratio_low=1.5", "actor_rollout_ref.actor.clip_ratio_c=1",
        "actor_rollout_ref.actor.ppo_epochs=0", "data.max_prompt_length=0",
        "actor_rollout_ref.actor.optim.weight_decay=-1",
        "actor_rollout_ref.actor.optim.betas=[0.9,1.0]",
        "actor_rollout_ref.actor.optim.betas=[0.9]", "data.min_response_length=513"}) {
    const runtime::Status refused =
        complaint({wrong}, [](const Config& config) { return PolicyOptions::from_config(config); });
    EXPECT_EQ(refused.code(), runtime::ErrorCode::kInvalidArgument) << wrong;
    EXPECT_NE(refused.message().find(key_of(wrong)), std::string::npos) << refused.message();
  }
}

TEST(PolicyOptions, RolloutsAreDeterministicUnlessToldOtherwise) {
  EXPECT_TRUE(PolicyOptions::from_config(config())->deterministic_rollouts);
  EXPECT_FALSE(PolicyOptions::from_config(config({"actor_rollout_ref.rollout.deterministic=false"}))
                   ->deterministic_rollouts);
}

TEST(LrSchedule, WarmsUpForARatioOfTheRun) {
  const std::string optim = "actor_rollout_ref.actor.optim.";
  const auto schedule =
      lr_schedule_from_config(config({optim + "lr=1e-3", optim + "lr_scheduler_type=cosine",
                                      optim + "lr_warmup_steps_ratio=0.1"}),
                              kActorRole, 50);
  ASSERT_TRUE(schedule.ok()) << schedule.status().to_string();
  EXPECT_EQ(schedule->kind, LrScheduleOptions::Kind::kCosine);
  EXPECT_EQ(schedule->peak, 1e-3);
  EXPECT_EQ(schedule->warmup_steps, 5);
  EXPECT_EQ(schedule->total_steps, 50);
  EXPECT_EQ(lr_schedule_from_config(
                config({optim + "lr_warmup_steps=0", optim + "lr_warmup_steps_ratio=0.1"}),
                kActorRole, 50)
                ->warmup_steps,
            5);
  EXPECT_EQ(lr_schedule_from_config(
                config({optim + "lr_warmup_steps=2", optim + "lr_warmup_steps_ratio=0.1"}),
                kActorRole, 50)
                ->warmup_steps,
            2);
}

TEST(LrSchedule, IsUnderstoodByTheNamesOfOtherEngines) {
  const std::string optim = "actor_rollout_ref.actor.optim.";
  const auto schedule = [&](std::vector<std::string> keys) {
    for (std::string& key : keys) key = optim + key;
    keys.push_back(optim + "lr=1e-3");
    return lr_schedule_from_config(config(keys), kActorRole, 50);
  };
  const auto megatron = schedule(
      {"lr_decay_style=cosine", "min_lr=1e-4", "lr_decay_steps=40", "lr_warmup_steps_ratio=0.1"});
  ASSERT_TRUE(megatron.ok()) << megatron.status().to_string();
  EXPECT_EQ(megatron->kind, LrScheduleOptions::Kind::kCosine);
  EXPECT_DOUBLE_EQ(megatron->min_ratio, 0.1);
  EXPECT_EQ(megatron->total_steps, 40);
  EXPECT_EQ(megatron->warmup_steps, 5);
  EXPECT_EQ(schedule({"lr_decay_style=WSD"})->kind, LrScheduleOptions::Kind::kWsd);
  EXPECT_EQ(schedule({"lr_decay_style=WSD", "lr_scheduler_type=wsd"})->kind,
            LrScheduleOptions::Kind::kWsd);
  EXPECT_DOUBLE_EQ(schedule({"min_lr_factor=0.25"})->min_ratio, 0.25);
  EXPECT_DOUBLE_EQ(schedule({"min_lr_ratio=0.25", "min_lr=0"})->min_ratio, 0.25);

  const auto refused = [&](std::vector<std::string> keys, const std::string& part) {
    const auto wrong = schedule(std::move(keys));
    EXPECT_EQ(wrong.status().code(), runtime::ErrorCode::kInvalidArgument);
    EXPECT_NE(wrong.status().message().find(part), std::string::npos) << wrong.status().message();
  };
  refused({"lr_decay_style=cosine", "lr_scheduler_type=linear"}, "two names of the schedule");
  refused({"min_lr_ratio=0.5", "min_lr=1e-4"}, "with different values");
  refused({"min_lr=1"}, "optim.min_lr: must be from 0 to ");
  EXPECT_NE(Config::load(
                {.file = std::nullopt, .overrides = {optim + "lr_decay_style=inverse-square-root"}})
                .status()
                .message()
                .find("inverse square roots"),
            std::string::npos);
}

TEST(LrSchedule, OfAStageTakesTheKeysOfItsEngines) {
  const auto schedule = [](const std::vector<std::string>& keys) {
    const auto config =
        Config::load({.file = std::nullopt, .overrides = keys, .keys = &sft_keys()});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return lr_schedule_from_config(*config, kStageRole, 100);
  };
  const auto megatron = schedule({"optim.lr=2e-5", "optim.lr_warmup_init=2e-6", "optim.min_lr=2e-6",
                                  "optim.lr_decay_style=cosine"});
  ASSERT_TRUE(megatron.ok()) << megatron.status().to_string();
  EXPECT_DOUBLE_EQ(megatron->start_ratio, 0.1);
  EXPECT_DOUBLE_EQ(megatron->min_ratio, 0.1);
  EXPECT_DOUBLE_EQ(schedule({"optim.lr=1e-4", "optim.lr_min=1e-5"})->min_ratio, 0.1);
  EXPECT_DOUBLE_EQ(schedule({"optim.init_lr_ratio=0.3"})->start_ratio, 0.3);
  EXPECT_EQ(schedule({"optim.decay_type=linear"})->kind, LrScheduleOptions::Kind::kLinear);
  EXPECT_EQ(schedule({})->kind, LrScheduleOptions::Kind::kConstant);
  EXPECT_FALSE(schedule({"optim.decay_type=linear", "optim.lr_decay_style=cosine"}).ok());
}

TEST(Offload, IsMegatronsToo) {
  EXPECT_FALSE(offload_from_config(config(), "actor_rollout_ref.actor.fsdp_config")->parameters);
  const auto actor =
      offload_from_config(config({"actor_rollout_ref.actor.megatron.param_offload=true",
                                  "actor_rollout_ref.actor.megatron.optimizer_offload=true"}),
                          "actor_rollout_ref.actor.fsdp_config");
  EXPECT_TRUE(actor->parameters);
  EXPECT_FALSE(actor->gradients);
  EXPECT_TRUE(
      offload_from_config(config({"critic.megatron.grad_offload=true"}), "critic.fsdp")->gradients);
  EXPECT_TRUE(offload_from_config(config({"actor_rollout_ref.ref.megatron.param_offload=true"}),
                                  "actor_rollout_ref.ref.fsdp_config")
                  ->parameters);
}

TEST(SlotOptions, OneWorkerANodeUnlessToldOtherwise) {
  const auto options = SlotOptions::from_config(config());
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  EXPECT_EQ(options->nodes, 1);
  EXPECT_EQ(options->per_node, 1);
  EXPECT_EQ(
      SlotOptions::from_config(config({"trainer.nnodes=2", "trainer.n_gpus_per_node=3"}))->per_node,
      3);
  EXPECT_EQ(options->device, "") << "verl's default is cuda, a machine of CPUs has none";
  EXPECT_EQ(SlotOptions::from_config(config({"trainer.device=cuda"}))->device, "cuda");
}

// A worker sees one GPU, as its first.
TEST(SlotOptions, NumbersOfGpusAreRefused) {
  for (const char* device : {"cuda:0", "cuda:1"}) {
    const auto refused = complaint({std::string("trainer.device=") + device},
                                   [](const Config& c) { return SlotOptions::from_config(c); });
    EXPECT_FALSE(refused.ok()) << device;
    EXPECT_NE(refused.message().find("trainer.device"), std::string::npos) << refused.message();
  }
}

TEST(WorkerSlots, AllRolesWithAModelFitASlotsGpu) {
  WorkerSlots slots;
  EXPECT_EQ(slots.gpu_share(), 0.0) << "no GPU";
  slots.device = "cuda";
  EXPECT_EQ(slots.gpu_share(), 1.0);
  EXPECT_EQ(slots.without_models().gpu_share(), 0.0);
  EXPECT_TRUE(slots.without_models().has_gpus()) << "its place is that slot all the same";
  for (slots.models = 1; slots.models <= 16; ++slots.models) {
    double left = 1.0;
    for (std::int64_t role = 0; role < slots.models; ++role) {
      EXPECT_GE(left, slots.gpu_share()) << slots.models;
      left -= slots.gpu_share();
    }
    EXPECT_GT(slots.gpu_share(), 0.9 / static_cast<double>(slots.models));
  }
}

TEST(WorkerSlots, CudasAllocatorGrowsItsSegments) {
  constexpr const char* kName = "PYTORCH_ALLOC_CONF";
  ::unsetenv(kName);
  WorkerSlots slots;
  EXPECT_EQ(worker_environment(slots).count(kName), 0U);
  EXPECT_EQ(worker_environment(slots).at("OMP_WAIT_POLICY"), "PASSIVE");
  slots.device = "cuda";
  EXPECT_EQ(worker_environment(slots).at(kName), "expandable_segments:True");
  EXPECT_EQ(worker_environment(slots.without_models()).count(kName), 0U);
  ::setenv(kName, "max_split_size_mb:64", 1);
  EXPECT_EQ(worker_environment(slots).at(kName), "max_split_size_mb:64") << "as the user has it";
  ::unsetenv(kName);
}

TEST(PolicyOptions, ADeviceComputesInBf16AndTakesLargerPassesUnlessToldOtherwise) {
  const auto cpu = PolicyOptions::from_config(config());
  const auto cuda = PolicyOptions::from_config(config(), "cuda");
  ASSERT_TRUE(cpu.ok() && cuda.ok()) << cuda.status().to_string();
  EXPECT_FALSE(cpu->bf16);
  EXPECT_TRUE(cuda->bf16);
  EXPECT_EQ(cpu->micro_batch.tokens_max, 2048);
  EXPECT_EQ(cuda->micro_batch.tokens_max, 16'384);
  const Config told = config({"actor_rollout_ref.actor.fsdp_config.dtype=float32",
                              "actor_rollout_ref.actor.use_dynamic_bsz=true",
                              "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096"});
  const auto exact = PolicyOptions::from_config(told, "cuda");
  ASSERT_TRUE(exact.ok()) << exact.status().to_string();
  EXPECT_FALSE(exact->bf16);
  EXPECT_EQ(exact->micro_batch.tokens_max, 4096);
  // A default does not contradict another key.
  const auto older = PolicyOptions::from_config(config({"sample_store.enable=true"}), "cuda");
  ASSERT_TRUE(older.ok()) << older.status().to_string();
  EXPECT_FALSE(older->bf16);
  const auto critic = CriticOptions::from_config(config({"algorithm.adv_estimator=gae"}), "cuda");
  ASSERT_TRUE(critic.ok()) << critic.status().to_string();
  EXPECT_TRUE(critic->bf16);
}

TEST(PolicyOptions, TheEnginesLimitsAreVerlsKeys) {
  const auto limits = [](std::vector<std::string> overrides, const std::string& device) {
    const auto found = EngineLimits::from_config(config(std::move(overrides)), device);
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    return found.value_or(EngineLimits{});
  };
  EXPECT_EQ(limits({}, "").sequences_max, 64);
  EXPECT_EQ(limits({}, "").step_tokens_max, 512);
  EXPECT_EQ(limits({}, "cuda").sequences_max, 256);
  EXPECT_EQ(limits({}, "cuda").step_tokens_max, 8192);
  const std::vector<std::string> told = {"actor_rollout_ref.rollout.max_num_seqs=24",
                                         "actor_rollout_ref.rollout.max_num_batched_tokens=96",
                                         "actor_rollout_ref.rollout.gpu_memory_utilization=0.8"};
  for (const char* device : {"", "cuda"}) {
    EXPECT_EQ(limits(told, device).sequences_max, 24);
    EXPECT_EQ(limits(told, device).step_tokens_max, 96);
    EXPECT_EQ(limits(told, device).utilization, 0.8);
  }
  for (const char* wrong : {"actor_rollout_ref.rollout.max_num_seqs=0",
                            "actor_rollout_ref.rollout.max_num_batched_tokens=-1",
                            "actor_rollout_ref.rollout.gpu_memory_utilization=1.5"})
    EXPECT_NE(complaint({wrong}, [](const Config& c) { return PolicyOptions::from_config(c); })
                  .message()
                  .find(key_of(wrong)),
              std::string::npos)
        << wrong;
}

// Of the process; the CPU's libraries listen to it, too.
TEST(ActorSetup, ProductsOnCudaAreAsPreciseAsTheKeySays) {
  const auto precision = [](const char* device, std::vector<std::string> overrides) {
    at::globalContext().setFloat32MatmulPrecision("highest");
    WorkerSpec spec{.config = config(std::move(overrides)).serialize()};
    spec.device = device;
    const auto parsed = parse_config(spec);
    EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
    return at::globalContext().float32MatmulPrecision();
  };
  const std::string high = "trainer.float32_matmul_precision=high";
  EXPECT_EQ(precision("cuda", {high}), at::Float32MatmulPrecision::HIGH);
  EXPECT_EQ(precision("", {high}), at::Float32MatmulPrecision::HIGHEST);
  EXPECT_EQ(precision("cuda", {}), at::Float32MatmulPrecision::HIGHEST);
  at::globalContext().setFloat32MatmulPrecision("highest");
}

TEST(ActorSetup, ATeamNeedsTheHeadsOfTheModelThatIsThere) {
  const support::TemporaryFolder folder;
  ASSERT_TRUE(make_toy_model(folder.path(), {.layers = 1, .heads = 2, .kv_heads = 1}).ok());
  WorkerSpec spec;
  spec.model = folder.path().string();
  spec.size = 2;
  for (const std::string role : {kActorRole, kCriticRole}) {
    const std::string key = role + ".ulysses_sequence_parallel_size";
    const runtime::Status few = check_team(config({key + "=2"}), role, spec);
    EXPECT_EQ(few.code(), runtime::ErrorCode::kInvalidArgument);
    EXPECT_EQ(few.message().find(key + ": the model has 1 key heads"), 0u) << few.message();
    EXPECT_TRUE(check_team(config({key + "=1"}), role, spec).ok());
  }
}

TEST(WorkerSlots, AWorkerHasAtLeastOneThread) {
  WorkerSlots slots;
  slots.cpus = 0.5;
  EXPECT_EQ(slots.threads(), 1);
  slots.cpus = 3.7;
  EXPECT_EQ(slots.threads(), 3);
  slots.nodes = 2;
  slots.per_node = 4;
  EXPECT_EQ(slots.size(), 8);
  EXPECT_EQ(slots.bundle_of(5), 1U) << "a bundle a node";
  slots.device = "cuda";
  EXPECT_EQ(slots.bundle_of(5), 5U) << "a bundle a GPU";
}

TEST(WorkerSlots, RanksThatSharePassesAreOnOneNode) {
  WorkerSlots slots;
  slots.nodes = 2;
  slots.per_node = 4;
  const auto slots_of_ranks = [&slots](std::vector<int> ranks) {
    std::vector<std::int64_t> found;
    for (const int rank : ranks) found.push_back(slots.slot_of(rank));
    return found;
  };
  using Slots = std::vector<std::int64_t>;
  const auto pairs = slots.in_teams_of(config({std::string(kTensorRanksKey) + "=2"}), kCriticRole);
  ASSERT_TRUE(pairs.ok()) << pairs.status().to_string();
  slots = *pairs;
  // Of four teams, the rank at position p of team d is p * 4 + d.
  EXPECT_EQ(slots_of_ranks({0, 4, 1, 5, 2, 6, 3, 7}), Slots({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(slots.bundle_of(5), 0U);
  EXPECT_EQ(slots.bundle_of(2), 1U);
  const auto one = slots.in_teams_of(config({std::string(kTensorRanksKey) + "=8"}), kCriticRole);
  ASSERT_TRUE(one.ok());
  slots = *one;
  EXPECT_EQ(slots_of_ranks({0, 1, 2, 3, 4, 5, 6, 7}), Slots({0, 1, 2, 3, 4, 5, 6, 7}));
  const auto uneven = slots.in_teams_of(config({std::string(kTensorRanksKey) + "=3"}), kCriticRole);
  EXPECT_NE(uneven.status().message().find(kTensorRanksKey), std::string::npos);
}

}  // namespace
}  // namespace rl
