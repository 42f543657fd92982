#include "rl/run/rl/run_models.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Result;

const std::string kPolicy = "actor_rollout_ref.model.path=";
const std::string kCritic = "critic.model.path=";
const std::string kTeachers = "distillation.teacher_models.";

class RunModelsTest : public ::testing::Test {
 protected:
  RunModelsTest() {
    options_.seed = 3;
    policy_.positions_max = 64;
  }

  // A model of that name in the test's folder.
  fs::path make(const std::string& name, const ToyModelOptions& options = {}) {
    ToyModelOptions tiny = options;
    tiny.layers = 1;
    tiny.hidden_size = tiny.intermediate_size = 16;
    const fs::path model = folder_.path() / name;
    fs::create_directories(model);
    EXPECT_TRUE(make_toy_model(model, tiny).ok());
    return model;
  }
  // Two letters of its tokenizer change places.
  static void swap_letters(const fs::path& model) {
    const fs::path file = model / "tokenizer.json";
    nlohmann::json tokenizer = nlohmann::json::parse(std::ifstream(file));
    nlohmann::json& vocabulary = tokenizer["model"]["vocab"];
    std::swap(vocabulary["a"], vocabulary["b"]);
    std::ofstream(file) << tokenizer.dump();
  }

  Result<RunModels> find(std::vector<std::string> overrides) const {
    overrides.push_back("trainer.default_local_dir=" + folder_.path().string());
    const auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
    if (!config.ok()) return config.status();
    return RunModels::find(*config, options_, policy_);
  }
  std::string message(std::vector<std::string> overrides) const {
    return find(std::move(overrides)).status().message();
  }

  support::TemporaryFolder folder_;
  TrainerOptions options_;
  PolicyOptions policy_;
};

TEST_F(RunModelsTest, APolicyAloneIsEnough) {
  const fs::path model = make("policy");
  // What nothing asks for is not looked for.
  const auto models =
      find({kPolicy + model.string(), kCritic + "/nowhere", kTeachers + "a.model_path=/nowhere",
            "reward.reward_model.model_path=/nowhere"});
  ASSERT_TRUE(models.ok()) << models.status().to_string();
  EXPECT_EQ(models->policy, model);
  EXPECT_EQ(models->critic, model);
  EXPECT_EQ(models->identity.name, model.string());
  EXPECT_FALSE(models->identity.adapter);
  EXPECT_FALSE(models->adapter.has_value());
  EXPECT_TRUE(models->teachers.empty());
}

TEST_F(RunModelsTest, TheToyModelIsMadeByTheRunsSeed) {
  const auto models = find({kPolicy + "toy"});
  ASSERT_TRUE(models.ok()) << models.status().to_string();
  EXPECT_EQ(models->policy, folder_.path() / "toy_model");
  EXPECT_TRUE(fs::exists(models->policy / "config.json"));
  EXPECT_EQ(models->identity.name, "toy");
  const std::string fingerprint = models->identity.fingerprint;
  EXPECT_EQ(find({kPolicy + "toy"})->identity.fingerprint, fingerprint);
  options_.seed = 4;
  EXPECT_NE(find({kPolicy + "toy"})->identity.fingerprint, fingerprint);
}

TEST_F(RunModelsTest, APolicyThatIsNotThereIsNamedByItsKey) {
  const auto models = find({kPolicy + "/nowhere/policy"});
  EXPECT_EQ(models.status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(models.status().message().find(
                "actor_rollout_ref.model.path (from the command line): /nowhere/policy: no such "
                "file or folder"),
            0u)
      << models.status().message();
  EXPECT_EQ(find({}).status().code(), ErrorCode::kNotFound);
  EXPECT_NE(message({}).find("actor_rollout_ref.model.path"), std::string::npos) << message({});
}

TEST_F(RunModelsTest, AFolderWithoutWeightsIsNoPolicy) {
  const fs::path empty = folder_.path() / "empty";
  fs::create_directories(empty);
  EXPECT_FALSE(find({kPolicy + empty.string()}).ok());
  EXPECT_NE(message({kPolicy + empty.string()}).find(empty.string()), std::string::npos)
      << message({kPolicy + empty.string()});
}

TEST_F(RunModelsTest, ACriticOfItsOwnReadsWhatThePolicyWrites) {
  const fs::path policy = make("policy"), critic = make("critic");
  options_.estimator = &advantage_estimator("gae");
  options_.critic_model = critic.string();
  const std::vector<std::string> both = {kPolicy + policy.string(), kCritic + critic.string()};
  ASSERT_TRUE(find(both).ok()) << message(both);
  EXPECT_EQ(find(both)->critic, critic);
  swap_letters(critic);
  EXPECT_EQ(find(both).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(message(both).find("critic.model.path: token "), 0u) << message(both);
  fs::remove_all(critic);
  EXPECT_EQ(message(both).find("critic.model.path (from the command line): "), 0u) << message(both);
}

TEST_F(RunModelsTest, ACriticThatIsNoneOfItsOwnIsThePolicy) {
  const fs::path policy = make("policy");
  options_.estimator = &advantage_estimator("gae");
  const std::vector<std::string> both = {kPolicy + policy.string(), kCritic + "/nowhere"};
  EXPECT_EQ(find(both)->critic, policy) << "no critic is named";
  options_.critic_model = "/nowhere";
  options_.shared_critic = true;
  EXPECT_EQ(find(both)->critic, policy) << "it is a head on the policy";
  options_.shared_critic = false;
  EXPECT_FALSE(find(both).ok());
}

TEST_F(RunModelsTest, AnAdaptersFolderIsFoundFromOtherFoldersToo) {
  const std::string policy = kPolicy + make("policy").string();
  policy_.adapter = AdapterOptions{.lora = {}, .folder = "adapters/a"};
  auto models = find({policy});
  ASSERT_TRUE(models.ok()) << models.status().to_string();
  EXPECT_EQ(models->adapter, fs::current_path() / "adapters/a");
  EXPECT_TRUE(models->identity.adapter);
  policy_.adapter->folder.clear();
  models = find({policy});
  ASSERT_TRUE(models.ok() && models->adapter.has_value());
  EXPECT_EQ(*models->adapter, fs::path()) << "a new one";
  EXPECT_TRUE(models->identity.adapter);
}

TEST_F(RunModelsTest, TeachersAreFoundInTheConfigurationsOrder) {
  const std::string policy = kPolicy + make("policy").string();
  const fs::path maths = make("maths"), code = make("code");
  options_.distills = true;
  const auto models =
      find({policy, kTeachers + "maths.model_path=" + maths.string(), kTeachers + "maths.key=gsm8k",
            kTeachers + "code.model_path=" + code.string(), kTeachers + "code.key=mbpp"});
  ASSERT_TRUE(models.ok()) << models.status().to_string();
  ASSERT_EQ(models->teachers.size(), 2u);
  EXPECT_EQ(models->teachers[0].model, maths);
  EXPECT_EQ(models->teachers[0].role(), "teacher_maths");
  EXPECT_EQ(models->teachers[1].model, code);
  EXPECT_EQ(models->teachers[1].named.rows, "mbpp");
  EXPECT_TRUE(models->teachers[1].group.empty()) << "none is started";
}

TEST_F(RunModelsTest, ATeacherThatDoesNotFitIsNamedByItsKey) {
  const std::string policy = kPolicy + make("policy").string();
  const std::string key = kTeachers + "teacher_model.model_path";
  options_.distills = true;
  EXPECT_NE(message({policy}).find(key + " is not set"), std::string::npos) << message({policy});
  EXPECT_EQ(message({policy, key + "=/nowhere"}).find(key + " (from the command line): "), 0u)
      << message({policy, key + "=/nowhere"});
  const fs::path other = make("other");
  swap_letters(other);
  const std::vector<std::string> swapped = {policy, key + "=" + other.string()};
  EXPECT_EQ(find(swapped).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(message(swapped).find(key + ": token "), 0u) << message(swapped);
}

TEST_F(RunModelsTest, ATeacherReadsSamplesOfTheirWholeLength) {
  const std::string policy = kPolicy + make("policy", {.positions = 40}).string();
  const fs::path teacher = make("teacher", {.positions = 32});
  const std::string key = kTeachers + "teacher_model.model_path";
  options_.distills = true;
  policy_.positions_max = 33;
  const auto refused = find({policy, key + "=" + teacher.string()});
  EXPECT_EQ(refused.status(),
            runtime::invalid_argument(key + ": " + teacher.string() +
                                      " reads at most 32 tokens, and samples have up to 33: lower "
                                      "data.max_prompt_length or data.max_response_length"));
  policy_.positions_max = 32;
  EXPECT_TRUE(find({policy, key + "=" + teacher.string()}).ok());
  policy_.positions_max = 1000;
  EXPECT_NE(message({policy, key + "=" + teacher.string()}).find("up to 40:"), std::string::npos)
      << "samples are no longer than the policy reads";
}

TEST_F(RunModelsTest, RewardModelsArePathsInTheRewardsConfiguration) {
  const fs::path policy = make("policy"), judge = make("judge");
  const std::string key = "reward.reward_model.model_path";
  const std::string relative = fs::relative(judge).string();
  const std::vector<std::string> given = {kPolicy + policy.string(), key + "=" + relative,
                                          "reward.reward_model.enable=true"};
  const auto models = find(given);
  ASSERT_TRUE(models.ok()) << models.status().to_string();
  const fs::path found = *models->reward_config.get_string(key);
  EXPECT_TRUE(found.is_absolute()) << found;
  EXPECT_TRUE(fs::equivalent(found, judge)) << found;
  EXPECT_EQ(*models->reward_config.get_string("actor_rollout_ref.model.path"), policy.string());
  fs::remove_all(judge);
  EXPECT_EQ(find(given).status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(message(given).find(key + ": "), 0u) << message(given);
}

}  // namespace
}  // namespace rl
