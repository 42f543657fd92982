// Whole runs whose samples a custom agent loop makes.
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class CustomLoopTest : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    fs::create_directories(folder_);
    // Two turns, with the row's answer between them. It scores by the length of what the model
    // said, and fails where the first turn is empty of letters.
    std::ofstream(folder_ / "my_loops.py") << R"(
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

class Twice(AgentLoopBase):
    def __init__(self, *args, weight, **kwargs):
        super().__init__(*args, **kwargs)
        self.weight = weight

    async def run(self, sampling_params, **kwargs):
        prompt_ids = self.tokenizer.apply_chat_template(list(kwargs["raw_prompt"]), add_generation_prompt=True)
        first = await self.server_manager.generate(request_id="1", prompt_ids=prompt_ids, sampling_params=sampling_params | {"max_tokens": 3})
        hint = self.tokenizer.encode(kwargs["reward_model"]["ground_truth"][:1], add_special_tokens=False)
        second = await self.server_manager.generate(request_id="2", prompt_ids=prompt_ids + first.token_ids + hint, sampling_params=sampling_params | {"max_tokens": 4})
        ids = first.token_ids + hint + second.token_ids
        mask = [1] * len(first) + [0] * len(hint) + [1] * len(second)
        if kwargs["extra_info"].get("fails"):
            raise ValueError("this row is not for me")
        return AgentLoopOutput(prompt_ids=prompt_ids, response_ids=ids, response_mask=mask, reward_score=self.weight * len(first) + len(second), num_turns=4, metrics={})
)";
    std::ofstream(folder_ / "loops.yaml")
        << "- name: twice\n  _target_: my_loops.Twice\n  weight: 10\n";
    options_ =
        "data.max_response_length=12 actor_rollout_ref.rollout.multi_turn.num_tool_workers=1 "
        "actor_rollout_ref.rollout.agent.default_agent_loop=twice ";
    file_ = "actor_rollout_ref.rollout.agent.agent_loop_config_path=" +
            (folder_ / "loops.yaml").string() + " ";
  }

  std::string run_folder(const std::string& name) const {
    return "trainer.default_local_dir=" + (folder_ / name).string() + " ";
  }
  static nlohmann::json step(const fs::path& run, std::size_t index) {
    return nlohmann::json::parse(numbers(run).at(index))["data"];
  }

  std::string options_, file_;
};

TEST_F(CustomLoopTest, TwoWorkersDrawTheSameSamplesAndTheClassScoresThem) {
  for (const char* workers : {"1", "2"}) {
    const Outcome run = train(options_ + file_ + run_folder(workers) +
                              "trainer.total_training_steps=2 trainer.n_gpus_per_node=" + workers);
    ASSERT_EQ(run.code, 0) << run.output;
  }
  for (std::size_t at = 0; at < 2; ++at) {
    const nlohmann::json one = step(folder_ / "1", at), two = step(folder_ / "2", at);
    for (const char* name : {"critic/score/mean", "critic/score/max", "num_turns/mean",
                             "response_length/mean", "agent_loop/errors", "reward/failed"})
      EXPECT_NEAR(one[name].get<double>(), two[name].get<double>(), 1e-9) << name;
    EXPECT_NEAR(one["actor/grad_norm"].get<double>(), two["actor/grad_norm"].get<double>(),
                1e-4 * one["actor/grad_norm"].get<double>());
    EXPECT_EQ(one["num_turns/mean"], 4.0);
    EXPECT_GE(one["critic/score/min"].get<double>(), 11.0) << "the class's score, not the rule's";
    EXPECT_EQ(one["reward/failed"], 0.0);
  }
  // Equal samples with equal probabilities: those of the rollout are the trainer's.
  EXPECT_NEAR(step(folder_ / "1", 0)["actor/ppo_kl"].get<double>(), 0.0, 1e-6);
}

TEST_F(CustomLoopTest, RowsForWhichTheLoopFailsAreLeftOutAndCounted) {
  std::ofstream rows(folder_ / "rows.jsonl");
  for (int i = 0; i < 8; ++i) {
    rows
        << R"({"data_source": "toy", "prompt": [{"role": "user", "content": "sort ba"}], "reward_model": {"ground_truth": "ab"}, "extra_info": {"fails": )"
        << (i == 3 ? "true" : "false") << "}}\n";
  }
  rows.close();
  const Outcome run =
      train(options_ + file_ + run_folder("run") +
            "data.dataset_name=null data.train_files=" + (folder_ / "rows.jsonl").string() +
            " data.train_batch_size=8 actor_rollout_ref.actor.ppo_mini_batch_size=8 "
            "data.max_prompt_length=32 trainer.total_training_steps=1");
  ASSERT_EQ(run.code, 0) << run.output;
  const nlohmann::json first = step(folder_ / "run", 0);
  EXPECT_GT(first["agent_loop/errors"].get<double>(), 0);
  EXPECT_EQ(first["agent_loop/errors"], first["reward/failed"]);
  EXPECT_NE(run.output.find("this row is not for me"), std::string::npos) << run.output;
}

TEST_F(CustomLoopTest, AClassThatIsNotThereIsFoundBeforeTheFirstStep) {
  Outcome run = train(options_ + run_folder("run") + "trainer.total_training_steps=1");
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("agent.agent_loop_config_path"), std::string::npos) << run.output;
  std::ofstream(folder_ / "loops.yaml") << "- name: twice\n  _target_: my_loops.Thrice\n";
  run = train(options_ + file_ + run_folder("run") + "trainer.total_training_steps=1");
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("my_loops.Thrice"), std::string::npos) << run.output;
  EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl"));
}

}  // namespace
}  // namespace rl
