// Whole runs whose samples are conversations: with a tool that the model really calls, and with a
// user.
#include <csignal>
#include <cstdlib>

#include "rl/data/toy.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class TurnsTest : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    fs::create_directories(folder_);
    // One of the model's tokens is a whole call, so that a model that knows nothing makes some.
    fs::path tokenizer = fs::path(model()) / "tokenizer.json";
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(read(tokenizer));
    nlohmann::ordered_json call = json["added_tokens"][1];
    call["id"] = json["model"]["vocab"]["z"];
    call["content"] = kCall;
    call["special"] = false;
    json["model"]["vocab"].erase("z");
    json["model"]["vocab"][kCall] = call["id"];
    json["added_tokens"].push_back(call);
    std::ofstream(tokenizer) << json.dump();
    tokenizer = fs::path(model()) / "tokenizer_config.json";
    json = nlohmann::ordered_json::parse(read(tokenizer));
    json["chat_template"] =
        "{% for m in messages %}{{ ('<|assistant|>' if m.role == 'assistant' else '<|user|>') + "
        "m.content + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% "
        "endif %}";
    std::ofstream(tokenizer) << json.dump();
    std::ofstream(folder_ / "my_tools.py")
        << "from verl.tools.base_tool import BaseTool\n"
           "from verl.tools.schemas import ToolResponse\n"
           "class Bell(BaseTool):\n"
           "    async def execute(self, instance_id, parameters, **kwargs):\n"
           "        return ToolResponse(text=\"ding\"), 1.0, {}\n";
    std::ofstream(folder_ / "tools.yaml")
        << "tools:\n  - class_name: my_tools.Bell\n    config: {type: native}\n    tool_schema:\n  "
           "    type: function\n      function: {name: ring, description: rings}\n";
    std::ofstream(folder_ / "my_users.py")
        << "from verl.interactions.base import BaseInteraction\n"
           "class User(BaseInteraction):\n"
           "    async def generate_response(self, instance_id, messages, **kwargs):\n"
           "        answers = sum(m[\"role\"] == \"assistant\" for m in messages)\n"
           "        return answers > 1, \"again\", float(answers), {}\n";
    std::ofstream(folder_ / "users.yaml")
        << "interaction:\n  - name: user\n    class_name: my_users.User\n";
    std::ofstream(folder_ / "reward.py")
        << "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
           "    return {\"score\": extra_info[\"num_turns\"] + len(solution_str) / 100, \"calls\": "
           "len(extra_info[\"tool_rewards\"]), \"said\": len(extra_info[\"turn_scores\"])}\n";
    const std::string section = "actor_rollout_ref.rollout.multi_turn.";
    options_ = "data.max_response_length=24 custom_reward_function.path=" +
               (folder_ / "reward.py").string() + " reward.num_workers=1 " + section +
               "enable=true " + section + "num_tool_workers=2 ";
    tools_ = section + "tool_config_path=" + (folder_ / "tools.yaml").string() + " ";
    users_ = section + "interaction_config_path=" + (folder_ / "users.yaml").string() + " ";
  }

  std::string run_folder(const std::string& name) const {
    return "trainer.default_local_dir=" + (folder_ / name).string() + " ";
  }

  static nlohmann::json step(const fs::path& run, std::size_t index) {
    return nlohmann::json::parse(numbers(run).at(index))["data"];
  }

  static constexpr const char* kCall =
      R"(<tool_call>{"name": "ring", "arguments": {}}</tool_call>)";
  std::string options_, tools_, users_;
};

TEST_F(TurnsTest, CallsAreMadeAndTheirAnswersAreNotLearned) {
  const Outcome run = train(
      options_ + tools_ + run_folder("run") +
      "actor_rollout_ref.rollout.n=8 trainer.total_training_steps=2 trainer.rollout_data_dir=" +
      (folder_ / "dump").string());
  ASSERT_EQ(run.code, 0) << run.output;
  const nlohmann::json first = step(folder_ / "run", 0);
  EXPECT_GT(first["tool/calls"].get<double>(), 0) << first.dump();
  EXPECT_EQ(first["tool/errors"].get<double>() + first["tool/crashes"].get<double>() +
                first["tool/timeouts"].get<double>(),
            0)
      << run.output;
  EXPECT_GE(first["num_turns/max"].get<double>(), 4);
  EXPECT_EQ(first["num_turns/min"].get<double>(), 2);
  EXPECT_GT(first["reward/calls"].get<double>(), 0) << "the reward sees the calls";
  std::ifstream dump(folder_ / "dump" / "1.jsonl");
  int with_answers = 0;
  for (std::string line; std::getline(dump, line);) {
    const nlohmann::json sample = nlohmann::json::parse(line);
    const std::vector<int> mask = sample["response_mask"];
    ASSERT_EQ(mask.size(), sample["tokens"].size());
    std::string read;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) read += sample["tokens"][i].get<std::string>();
    }
    if (read.empty()) continue;
    ++with_answers;
    EXPECT_EQ(read.find("ding"), 0U) << line;
    EXPECT_EQ(read.size() % 4, 0U) << line;
  }
  EXPECT_GT(with_answers, 0);
}

TEST_F(TurnsTest, TwoWorkersDrawTheSameConversations) {
  for (const char* workers : {"1", "2"}) {
    const Outcome run = train(options_ + tools_ + users_ + run_folder(workers) +
                              "trainer.total_training_steps=1 trainer.n_gpus_per_node=" + workers);
    ASSERT_EQ(run.code, 0) << run.output;
  }
  const nlohmann::json one = step(folder_ / "1", 0), two = step(folder_ / "2", 0);
  for (const char* name : {"critic/score/mean", "num_turns/mean", "response_length/mean",
                           "tool/calls", "interaction/calls", "reward/said"})
    EXPECT_EQ(one[name], two[name]) << name;
  EXPECT_GT(one["interaction/calls"].get<double>(), 0);
  EXPECT_NEAR(one["actor/pg_loss"].get<double>(), two["actor/pg_loss"].get<double>(), 1e-5);
  EXPECT_NEAR(one["actor/grad_norm"].get<double>(), two["actor/grad_norm"].get<double>(), 1e-4);
}

TEST_F(TurnsTest, ARunThatWasKilledGoesOnWithTheSameNumbers) {
  const std::string options =
      options_ + tools_ + users_ +
      "actor_rollout_ref.actor.use_kl_loss=true algorithm.adv_estimator=gae trainer.save_freq=1 ";
  Outcome run = train(options + run_folder("whole") + "trainer.total_training_steps=4");
  ASSERT_EQ(run.code, 0) << run.output;
  const std::string command =
      train_command(options + run_folder("killed") + "trainer.total_training_steps=4");
  const pid_t pid = start(command);
  ASSERT_TRUE(comes_while_it_runs(pid, [&] {
    return fs::exists(folder_ / "killed" / "global_step_2");
  })) << read(folder_ / "output");
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << read(folder_ / "output");
  EXPECT_TRUE(all_end()) << processes();
  run = train(options + run_folder("killed") + "trainer.total_training_steps=4");
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_EQ(read(folder_ / "whole" / "global_step_4" / "actor/huggingface/model.safetensors"),
            read(folder_ / "killed" / "global_step_4" / "actor/huggingface/model.safetensors"));
  EXPECT_EQ(step(folder_ / "whole", 3),
            step(folder_ / "killed", numbers(folder_ / "killed").size() - 1));
}

TEST_F(TurnsTest, ToolsThatCannotBeLoadedAreFoundBeforeTheFirstStep) {
  std::ofstream(folder_ / "my_tools.py") << "import nothing_of_the_kind\n";
  const Outcome run =
      train(options_ + tools_ + run_folder("run") + "trainer.total_training_steps=1");
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("nothing_of_the_kind"), std::string::npos) << run.output;
  EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl"));
}

}  // namespace
}  // namespace rl
