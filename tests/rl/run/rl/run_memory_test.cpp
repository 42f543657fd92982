// Sizes of the roles of a run; those of one process are tests/rl/plan/memory_plan_test.cpp's.
#include "rl/run/rl/run_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl/data/toy.h"
#include "rl/model/lora.h"
#include "rl/worker/reward_model.h"
#include "rl/worker/toy_model.h"
#include "tests/rl/plan/small_config.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using Parts = std::map<std::string, std::int64_t>;  // bytes by name

Parts parts_of(const std::vector<MemoryPart>& parts) {
  Parts map;
  for (const MemoryPart& part : parts) map[part.name] += part.bytes;
  return map;
}

void add_copy(std::vector<MemoryPart>& parts, const ModelConfig& model,
              const MemoryOptions& options) {
  for (MemoryPart& part : checkpoint_memory(model, options, /*copies=*/true))
    parts.push_back(std::move(part));
}

// With what a process takes itself.
Parts process_with(std::vector<MemoryPart> parts, bool trains, bool on_device = false) {
  parts.push_back(process_memory(trains, on_device));
  return parts_of(parts);
}

// 5 prompts with 2 samples each over 2 workers: one of them has 3 prompts. Prompts of 10 tokens
// and responses of up to 6.
class RunMemoryTest : public ::testing::Test {
 protected:
  RunMemoryTest() {
    trainer_.batch_prompts = 5;
    trainer_.samples_per_prompt = 2;
    trainer_.async_save = false;
    policy_.training.response_tokens_max = 6;
    policy_.positions_max = 40;
    slots_.per_node = 2;
  }

  static Config config(std::vector<std::string> overrides) {
    auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }
  Result<RunMemory> count() const {
    return run_memory(config_, trainer_, policy_, model_,
                      {.prompt_tokens = prompt_tokens_, .demonstrations = demonstrations_}, slots_);
  }
  RunMemory memory() const {
    auto memory = count();
    EXPECT_TRUE(memory.ok()) << memory.status().to_string();
    return memory.ok() ? std::move(*memory) : RunMemory{};
  }
  std::vector<std::string> roles() const {
    std::vector<std::string> names;
    for (const RoleMemory& role : memory().roles) names.push_back(role.role);
    return names;
  }
  RoleMemory role(const std::string& name) const {
    for (RoleMemory& role : memory().roles) {
      if (role.role.starts_with(name)) return std::move(role);
    }
    ADD_FAILURE() << "there is no " << name;
    return {};
  }
  // Policy passes of this many tokens.
  MemoryOptions learning(std::int64_t forward, std::int64_t output) const {
    return {.forward_tokens = forward, .output_tokens = output, .sequences = 6, .positions = 16};
  }
  // The folder of a model that is wider than the policy.
  std::string wide_model() {
    wide_.hidden_size = wide_.intermediate_size = 64;
    std::ofstream(folder_.path() / "config.json") << wide_.to_json().dump();
    return folder_.path().string();
  }

  support::TemporaryFolder folder_;
  Config config_ = config({});
  TrainerOptions trainer_;
  PolicyOptions policy_;
  ModelConfig model_ = small_config(), wide_ = small_config();
  SlotOptions slots_;
  std::int64_t prompt_tokens_ = 10;
  std::optional<RowLengths> demonstrations_;
};

TEST_F(RunMemoryTest, ARunHasAPolicyAndAReward) {
  EXPECT_EQ(roles(), (std::vector<std::string>{"policy (generates and trains)", "reward"}));
  const RoleMemory policy = role("policy"), reward = role("reward");
  EXPECT_EQ(policy.workers, 2);
  // 6 samples of 16 tokens; a group's prompt is computed once.
  EXPECT_EQ(parts_of(policy.parts), process_with(training_memory(model_, learning(66, 36)), true));
  EXPECT_EQ(reward.workers, 2);
  EXPECT_TRUE(reward.concurrent) << "while the reference scores";
  EXPECT_EQ(parts_of(reward.parts), process_with({}, false)) << "rules have no model";
  EXPECT_TRUE(memory().notes.empty());
  EXPECT_EQ(memory().device_bytes, 0);
}

TEST_F(RunMemoryTest, APassHasWhatItsLimitsLet) {
  policy_.scoring_batch = {.samples_max = 1};
  const auto activations = [&](const MicroBatchLimits& limits) {
    policy_.micro_batch = limits;
    return parts_of(role("policy").parts)["activations"];
  };
  const auto of_pass = [&](std::int64_t forward, std::int64_t output) {
    return parts_of(training_memory(model_, learning(forward, output)))["activations"];
  };
  EXPECT_EQ(activations({.samples_max = 2}), of_pass(22, 12));
  EXPECT_EQ(activations({.samples_max = 100}), of_pass(66, 36)) << "there are no more";
  EXPECT_EQ(activations({.tokens_max = 20}), of_pass(16, 7));
  EXPECT_EQ(activations({.tokens_max = 4}), of_pass(16, 6)) << "one sample is never cut";
  EXPECT_EQ(activations({.samples_max = 2, .tokens_max = 80}), of_pass(22, 12));
}

// Demonstrations may be much longer than what is generated later.
TEST_F(RunMemoryTest, AWarmStartsPassesCount) {
  const auto activations = [&] { return parts_of(role("policy").parts)["activations"]; };
  const auto of = [&](std::int64_t tokens) {
    return parts_of(training_memory(
        model_, {.forward_tokens = tokens, .output_tokens = tokens}))["activations"];
  };
  policy_.micro_batch = {.samples_max = 4};
  const std::int64_t rl = activations();
  demonstrations_ =
      RowLengths{.longest = 900, .items = {900, 800, 700, 1, 1, 1}, .rows = 6, .rows_seen = 6};
  EXPECT_EQ(activations(), rl) << "there is none";
  trainer_.warm_start.steps = 3;
  trainer_.warm_start.batch_rows = 4;  // 2 rows a worker
  EXPECT_EQ(activations(), of(900 + 800));
  policy_.recompute_layers = true;
  EXPECT_EQ(activations(), of(900 + 800)) << "a warm start keeps its layers' insides";
  policy_.recompute_layers = false;
  policy_.micro_batch = {.samples_max = 1};
  EXPECT_EQ(activations(), of(900));
  demonstrations_->items = {1, 1};
  EXPECT_GT(activations(), of(2)) << "the larger of both";
  demonstrations_.reset();
  EXPECT_EQ(activations(), of(40)) << "as long as samples may be";
}

TEST_F(RunMemoryTest, APassThatOnlyScoresMayBeTheLargest) {
  policy_.micro_batch = {.samples_max = 1};
  const auto scoring =
      scoring_memory(model_, {.forward_tokens = 66, .output_tokens = 36, .positions = 16});
  EXPECT_EQ(parts_of(role("policy").parts)["activations"], parts_of(scoring)["activations"]);
}

TEST_F(RunMemoryTest, SamplesAreAsLongAsTheDataOrTheConfigurationOrTheModelLetsThem) {
  const auto positions = [&] { return parts_of(role("policy").parts)["KV cache"] / (6 * 64); };
  EXPECT_EQ(positions(), 16);
  prompt_tokens_ = 0;
  EXPECT_EQ(positions(), 48) << "40, in blocks of 16: how long prompts are is not known";
  prompt_tokens_ = 30;
  EXPECT_EQ(positions(), 48);
  model_.max_position_embeddings = 20;
  EXPECT_EQ(positions(), 32);
}

TEST_F(RunMemoryTest, ACriticIsOfItsOwnModel) {
  trainer_.estimator = &advantage_estimator("gae");
  trainer_.critic_model = wide_model();
  config_ = config({"critic.fsdp.param_offload=true", "critic.fsdp.grad_offload=true"});
  const RoleMemory critic = role("critic");
  EXPECT_EQ(critic.workers, 2);
  EXPECT_TRUE(critic.weights_leave && critic.gradients_leave);
  MemoryOptions passes = learning(66, 36);
  passes.sequences = 0;
  EXPECT_EQ(parts_of(critic.parts), process_with(training_memory(wide_, passes), true));
  EXPECT_TRUE(memory().notes.empty());
}

TEST_F(RunMemoryTest, ACriticWhoseModelIsNotHereCountsAsThePolicys) {
  trainer_.estimator = &advantage_estimator("gae");
  MemoryOptions passes = learning(66, 36);
  passes.sequences = 0;
  const Parts like_policy = process_with(training_memory(model_, passes), true);
  for (const char* name : {"", "toy"}) {
    trainer_.critic_model = name;
    EXPECT_EQ(parts_of(role("critic").parts), like_policy) << name;
    EXPECT_TRUE(memory().notes.empty()) << name;
  }
  trainer_.critic_model = "/nowhere";
  EXPECT_EQ(parts_of(role("critic").parts), like_policy);
  ASSERT_EQ(memory().notes.size(), 1u);
  EXPECT_EQ(memory().notes[0].find("critic /nowhere: counted as if it were the policy's: "), 0u)
      << memory().notes[0];
  trainer_.shared_critic = true;
  EXPECT_EQ(roles().size(), 2u) << "a head on the policy is no role";
}

// The policy's heads say nothing of those of a critic that is fetched later.
TEST_F(RunMemoryTest, ACriticsTeamsNeedItsOwnModelsHeads) {
  trainer_.estimator = &advantage_estimator("gae");
  const std::string key = "critic.megatron.tensor_model_parallel_size";
  const auto teams = [&](int ranks, int policy_heads, const std::string& critic) {
    config_ = config({"critic.strategy=megatron", key + "=" + std::to_string(ranks)});
    model_.kv_heads = policy_heads;
    trainer_.critic_model = critic;
    return count().status();
  };
  EXPECT_TRUE(teams(2, 2, "").ok());
  EXPECT_EQ(teams(2, 1, "").message().find(key + ": the model has 1 key heads"), 0u);
  EXPECT_TRUE(teams(2, 1, "/nowhere").ok());
  EXPECT_EQ(teams(4, 2, "/nowhere").message().find(key + ": must be a divisor"), 0u);
  support::TemporaryFolder one_head;
  ASSERT_TRUE(make_toy_model(one_head.path(), {.layers = 1, .heads = 2, .kv_heads = 1}).ok());
  const Status few = teams(2, 2, one_head.path());
  EXPECT_EQ(few.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(few.message().find(key + ": the model has 1 key heads"), 0u) << few.message();
}

TEST_F(RunMemoryTest, AReferenceHasPassesOfItsOwn) {
  trainer_.kl_loss = true;
  config_ = config({"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1",
                    "actor_rollout_ref.ref.fsdp_config.param_offload=true"});
  const RoleMemory reference = role("reference");
  EXPECT_EQ(reference.workers, 2);
  EXPECT_TRUE(reference.weights_leave);
  EXPECT_EQ(parts_of(reference.parts),
            process_with(
                scoring_memory(model_, {.forward_tokens = 16, .output_tokens = 6, .positions = 16}),
                false));
}

TEST_F(RunMemoryTest, FrozenRolesMayBeKeptOnce) {
  trainer_.kl_loss = trainer_.distills = true;
  const std::string level = "fsdp_config.zero_level=3";
  config_ = config({"actor_rollout_ref.ref." + level, "+reward_model.model." + level,
                    "distillation.teacher_models.teacher_model.model_path=toy",
                    "reward.mixture=[{model: " + wide_model() + ", weight: 1}]"});
  MemoryOptions passes{.forward_tokens = 66,
                       .output_tokens = 36,
                       .positions = 16,
                       .workers = 2,
                       .zero = ZeroLevel::kWeights};
  const Parts once = process_with(scoring_memory(model_, passes), false);
  ASSERT_EQ(once.count("gathered units"), 1u);
  EXPECT_EQ(parts_of(role("reference").parts), once);
  EXPECT_EQ(parts_of(role("teacher").parts), once);
  EXPECT_EQ(parts_of(role("reward").parts)["weights"], 4 * weight_elements(wide_) / 2);
  EXPECT_EQ(parts_of(role("policy").parts).count("gathered units"), 0u);
  config_ =
      config({"actor_rollout_ref.ref." + level, "actor_rollout_ref.ref.fsdp_config.fsdp_size=1"});
  EXPECT_EQ(parts_of(role("reference").parts).count("gathered units"), 0u) << "groups of one";
  slots_.device = "cuda";
  config_ = config({});
  const Result<RunMemory> all_there = count();
  config_ = config({"actor_rollout_ref.ref." + level});
  const Result<RunMemory> dealt = count();
  ASSERT_TRUE(all_there.ok() && dealt.ok()) << dealt.status().to_string();
  EXPECT_LT(dealt->device_bytes, all_there->device_bytes) << "its part is on the host";
}

TEST_F(RunMemoryTest, WorkersThatGenerateAheadNeverTrain) {
  trainer_.rollout_workers = RolloutWorkersOptions{.nodes = 3, .per_node = 1};
  const RoleMemory rollout = role("rollout");
  EXPECT_EQ(rollout.workers, 3);
  EXPECT_TRUE(rollout.devices_of_its_own);
  Parts expected = process_with(training_memory(model_, learning(66, 36)), false);
  expected.erase("optimizer");
  expected.erase("activations");
  EXPECT_EQ(parts_of(rollout.parts), expected);
}

TEST_F(RunMemoryTest, TeachersAreScoredByTheirOwnModels) {
  const std::string key = "distillation.teacher_models.";
  const MemoryOptions passes{.forward_tokens = 66, .output_tokens = 36, .positions = 16};
  config_ = config({key + "teacher_model.model_path=toy"});
  EXPECT_EQ(roles().size(), 2u) << "nothing is distilled";
  trainer_.distills = true;
  EXPECT_EQ(parts_of(role("teacher").parts), process_with(scoring_memory(model_, passes), false));
  config_ = config({key + "maths.model_path=" + wide_model(), key + "maths.key=gsm8k",
                    key + "code.model_path=/nowhere", key + "code.key=mbpp",
                    "actor_rollout_ref.ref.fsdp_config.param_offload=true"});
  const RoleMemory maths = role("teacher maths");
  EXPECT_EQ(parts_of(maths.parts), process_with(scoring_memory(wide_, passes), false));
  EXPECT_TRUE(maths.weights_leave) << "as the reference's";
  EXPECT_EQ(parts_of(role("teacher code").parts), process_with({}, false));
  ASSERT_EQ(memory().notes.size(), 1u);
  EXPECT_EQ(memory().notes[0].find("teacher /nowhere: not counted: "), 0u) << memory().notes[0];
  config_ = config({});
  EXPECT_EQ(roles().size(), 2u) << "that there is none is told elsewhere";
}

TEST_F(RunMemoryTest, ARewardHasTheModelsThatAreHere) {
  config_ = config(
      {"reward.mixture=[{model: " + wide_model() + ", weight: 1}, {model: /nowhere, weight: 1}]",
       "+reward_model.model.fsdp_config.param_offload=true"});
  const auto judged = [&](std::int64_t tokens) {
    return process_with(scoring_memory(wide_, {.forward_tokens = tokens, .positions = 16}), false);
  };
  const RoleMemory reward = role("reward");
  EXPECT_EQ(parts_of(reward.parts), judged(6 * 16));
  EXPECT_TRUE(reward.weights_leave);
  ASSERT_EQ(memory().notes.size(), 1u);
  EXPECT_EQ(memory().notes[0].find("reward model /nowhere: not counted: "), 0u)
      << memory().notes[0];
  trainer_.batch_prompts = 1000;
  EXPECT_EQ(parts_of(role("reward").parts), judged(kRewardModelPassTokens));
}

TEST_F(RunMemoryTest, ACheckpointThatIsWrittenDuringStepsIsACopy) {
  trainer_.estimator = &advantage_estimator("gae");
  trainer_.critic_model = wide_model();
  const auto copied = [&](const char* name) {
    const Parts parts = parts_of(role(name).parts);
    const auto found = parts.find(kCheckpointPart);
    return found == parts.end() ? 0 : found->second;
  };
  trainer_.async_save = true;
  EXPECT_EQ(copied("policy"), 0) << "no step follows the last one";
  trainer_.save.steps = 10;
  EXPECT_EQ(copied("policy"), 3 * 4 * weight_elements(model_));
  EXPECT_EQ(copied("critic"), 3 * 4 * weight_elements(wide_));
  trainer_.async_save = false;
  EXPECT_EQ(copied("policy"), 0);
  EXPECT_EQ(copied("critic"), 0);
  trainer_.async_save = true;
  trainer_.save.steps = -1;
  trainer_.save_best.goal.metric = "val-core/reward";
  EXPECT_EQ(copied("policy"), 3 * 4 * weight_elements(model_));
}

TEST_F(RunMemoryTest, WhatWorkersKeepOnceIsCountedByRole) {
  trainer_.estimator = &advantage_estimator("gae");
  trainer_.gradient_leaves = 4;
  trainer_.mini_batch_prompts = 5;
  policy_.learner.zero = ZeroLevel::kGradients;
  policy_.micro_batch = {.samples_max = 4};
  config_ = config({"critic.fsdp.zero_level=3"});
  Parts policy = parts_of(role("policy").parts), critic = parts_of(role("critic").parts);
  // A model of 5952 bytes on 2 workers.
  EXPECT_EQ(policy["weights"], 5952);
  EXPECT_EQ(policy["sum of gradients"], 2976);
  EXPECT_EQ(policy["optimizer"], 5952);
  EXPECT_EQ(policy["gradients of a leaf"], 4 * (256 + 608 + 608))
      << "2 prompts with 2 samples: one pass";
  EXPECT_EQ(policy.count(kCheckpointShare), 0u) << "nothing is copied";
  EXPECT_EQ(critic["weights"], 2976);
  EXPECT_EQ(critic["gathered units"], 4 * 1216);
  EXPECT_EQ(critic.count(kGatheredPart), 0u) << "it does not generate";
  EXPECT_EQ(critic.count(kCheckpointPart), 0u);
  policy_.learner.zero = ZeroLevel::kWeights;
  policy_.learner.shard_ranks = 1;
  config_ = config({"critic.fsdp.zero_level=3", "critic.fsdp.fsdp_size=1"});
  EXPECT_EQ(parts_of(role("policy").parts)["weights"], 5952);
  EXPECT_EQ(parts_of(role("critic").parts)["weights"], 5952);
  policy_.learner.zero = ZeroLevel::kGradients;
  policy_.micro_batch = {.samples_max = 3};
  EXPECT_EQ(parts_of(role("policy").parts)["gradients of a leaf"], 5952);
  policy_.micro_batch = {.tokens_max = 64};
  EXPECT_EQ(parts_of(role("policy").parts)["gradients of a leaf"], 4 * (256 + 608 + 608));
  policy_.micro_batch = {.tokens_max = 63};
  EXPECT_EQ(parts_of(role("policy").parts)["gradients of a leaf"], 5952);
  trainer_.kl_loss = true;
  EXPECT_EQ(parts_of(role("reference").parts)["weights"], 5952) << "it is whole";
}

TEST_F(RunMemoryTest, AnAdapterAloneIsTrained) {
  policy_.adapter = AdapterOptions{.lora = {.rank = 2}, .folder = {}};
  trainer_.estimator = &advantage_estimator("gae");
  trainer_.kl_loss = true;
  trainer_.async_save = true;
  trainer_.save.steps = 10;
  const auto adapter = LoraAdapter::create(model_, policy_.adapter->lora, 0);
  ASSERT_TRUE(adapter.ok()) << adapter.status().to_string();
  MemoryOptions passes = learning(66, 36);
  passes.trained_elements = adapter->parameters().arena_size();
  std::vector<MemoryPart> parts = training_memory(model_, passes);
  add_copy(parts, model_, passes);
  EXPECT_EQ(parts_of(role("policy").parts), process_with(parts, true));
  MemoryOptions whole = learning(66, 36);
  whole.sequences = 0;
  parts = training_memory(model_, whole);
  add_copy(parts, model_, whole);
  EXPECT_EQ(parts_of(role("critic").parts), process_with(parts, true)) << "it has no adapter";
  EXPECT_EQ(parts_of(role("reference").parts),
            process_with(scoring_memory(
                             model_, {.forward_tokens = 66, .output_tokens = 36, .positions = 16}),
                         false));
}

TEST_F(RunMemoryTest, AnAdapterThatDoesNotFitIsAnError) {
  policy_.adapter =
      AdapterOptions{.lora = {.rank = 2, .target_modules = {"no_such"}}, .folder = {}};
  EXPECT_EQ(count().status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(count().status().message().find("no_such"), std::string::npos)
      << count().status().message();
  policy_.adapter->folder = "/nowhere";
  EXPECT_EQ(count().status().code(), ErrorCode::kNotFound);
}

TEST_F(RunMemoryTest, ModelsOnADeviceLeaveTheHostWithoutPasses) {
  slots_.device = "cuda";
  trainer_.kl_loss = true;
  policy_.learner.offload = {.parameters = true, .gradients = true};
  MemoryOptions passes = learning(66, 36);
  passes.on_device = true;
  const RoleMemory policy{.role = "",
                          .workers = 2,
                          .parts = training_memory(model_, passes),
                          .weights_leave = true,
                          .gradients_leave = true};
  passes.sequences = 0;
  const RoleMemory reference{.role = "", .workers = 2, .parts = scoring_memory(model_, passes)};
  EXPECT_EQ(parts_of(role("policy").parts), process_with(host_memory(policy.parts), true, true));
  EXPECT_EQ(parts_of(role("reference").parts),
            process_with(host_memory(reference.parts), false, true));
  EXPECT_EQ(parts_of(role("reward").parts), process_with({}, false)) << "rules are on the host";
  const DeviceMemory both[] = {device_memory(policy), device_memory(reference)};
  EXPECT_EQ(memory().device_bytes, device_peak(both));
  EXPECT_EQ(memory().ahead_device_bytes, 0);

  const std::int64_t without = memory().device_bytes;
  trainer_.rollout_workers = RolloutWorkersOptions{};
  EXPECT_EQ(memory().device_bytes, without) << "they have their own devices";
  std::vector<MemoryPart> generating = policy.parts;
  std::erase_if(generating, [](const MemoryPart& part) {
    return part.name == "optimizer" || part.name == "activations";
  });
  const DeviceMemory ahead[] = {device_memory({.role = "", .workers = 1, .parts = generating})};
  EXPECT_EQ(memory().ahead_device_bytes, device_peak(ahead));
}

TEST_F(RunMemoryTest, ACpuIsNoDevice) {
  const Parts host = parts_of(role("policy").parts);
  slots_.device = "cpu";
  EXPECT_EQ(parts_of(role("policy").parts), host);
  EXPECT_EQ(memory().device_bytes, 0);
}

TEST_F(RunMemoryTest, ValuesOfRolesKeysAreNamed) {
  const auto refused = [&](const std::string& section, const std::string& key) {
    nlohmann::ordered_json tree = config_.to_json();
    tree[nlohmann::ordered_json::json_pointer(section)][key] = "often";
    const auto memory = run_memory(config_.with_tree(std::move(tree)), trainer_, policy_, model_,
                                   {.prompt_tokens = 10}, slots_);
    EXPECT_EQ(memory.status().code(), ErrorCode::kInvalidArgument) << key;
    return memory.status().message();
  };
  const std::string reference =
      refused("/actor_rollout_ref/ref", "log_prob_micro_batch_size_per_gpu");
  EXPECT_EQ(reference.find("actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu: "), 0u)
      << reference;
  const std::string offload = refused("/actor_rollout_ref/ref/fsdp_config", "param_offload");
  EXPECT_EQ(offload.find("actor_rollout_ref.ref.fsdp_config.param_offload: "), 0u) << offload;
  const std::string reward = refused("/reward_model/model/fsdp_config", "param_offload");
  EXPECT_EQ(reward.find("reward_model.model.fsdp_config.param_offload: "), 0u) << reward;
  trainer_.estimator = &advantage_estimator("gae");
  const std::string critic = refused("/critic", "ppo_epochs");
  EXPECT_EQ(critic.find("critic.ppo_epochs: "), 0u) << critic;
}

class LongestPromptTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = std::make_unique<support::TemporaryFolder>();
    const ToyModelOptions tiny{.layers = 1, .hidden_size = 16, .intermediate_size = 16};
    ASSERT_TRUE(make_toy_model(model_->path(), tiny).ok());
  }
  static void TearDownTestSuite() { model_.reset(); }

  static Config config(std::vector<std::string> overrides = {}) {
    auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }
  // Prompts are letters, and each letter is a token.
  static Dataset prompts(const std::vector<std::int64_t>& lengths) {
    std::vector<DataRow> rows;
    for (const std::int64_t length : lengths) {
      DataRow& row = rows.emplace_back();
      row.prompt = std::string(static_cast<std::size_t>(length), 'a');
      row.where = "row " + std::to_string(rows.size());
    }
    return Dataset(std::move(rows));
  }
  static Result<std::int64_t> longest(const Dataset& rows, const Config& with = config()) {
    return longest_prompt(with, model_->path(), rows);
  }

  static inline std::unique_ptr<support::TemporaryFolder> model_;
};

TEST_F(LongestPromptTest, IsInTokensOfThePolicy) {
  EXPECT_EQ(*longest(prompts({3, 7, 5})), 7);
  EXPECT_EQ(*longest(prompts({})), 0);
  // "<|user|>sort dbca<|end|><|assistant|>"
  EXPECT_EQ(*longest(make_toy_dataset({.rows = 3, .length = 4})), 12);
}

TEST_F(LongestPromptTest, IsOfTheFirstThousandRows) {
  std::vector<std::int64_t> lengths(1001, 2);
  lengths[999] = 3;
  lengths[1000] = 9;
  EXPECT_EQ(*longest(prompts(lengths)), 3);
}

TEST_F(LongestPromptTest, LeavesOutWhatIsOverTheLimit) {
  EXPECT_EQ(*longest(prompts({3, 9, 4}), config({"data.max_prompt_length=8"})), 4);
  EXPECT_EQ(
      *longest(prompts({3, 9, 4}), config({"data.max_prompt_length=8", "data.truncation=left"})),
      8);
}

TEST_F(LongestPromptTest, AModelWithoutATokenizerIsAnError) {
  const support::TemporaryFolder empty;
  const auto refused = longest_prompt(config(), empty.path(), prompts({3}));
  EXPECT_EQ(refused.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(refused.status().message().find(empty.path().string()), std::string::npos)
      << refused.status().message();
}

TEST_F(LongestPromptTest, ARowThatCannotBeReadIsNamed) {
  const support::TemporaryFolder folder;
  const std::string file = folder.file("rows.jsonl");
  std::ofstream(file) << "{\"prompt\":\"ab\"}\n{\"question\":\"cd\"}\n";
  DatasetOptions options;
  options.files = {file};
  options.streaming = true;
  const auto rows = Dataset::load(options);
  ASSERT_TRUE(rows.ok()) << rows.status().to_string();
  const auto refused = longest(*rows);
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("rows.jsonl:2: no key 'prompt'"), std::string::npos)
      << refused.status().message();
}

TEST_F(LongestPromptTest, ATemplateThatDoesNotParseIsAnError) {
  const auto refused =
      longest(prompts({3}), config({"actor_rollout_ref.model.custom_chat_template='{% for %}'"}));
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace rl
