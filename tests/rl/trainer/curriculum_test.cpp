// The rows that a run trains on, where they follow its scores or a custom class; and a resumed run
// that takes the same ones.
#include <map>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class CurriculumTest : public TrainerTest {
 protected:
  // Ten rows whose answers are single letters; the n-th has difficulty 10 n.
  std::string data() const {
    const fs::path path = folder_ / "rows.jsonl";
    fs::create_directories(folder_);
    std::ofstream out(path);
    for (int i = 0; i < 10; ++i)
      out << nlohmann::json({{"prompt", std::string(1, static_cast<char>('a' + i % 4))},
                             {"answer", "a"},
                             {"data_source", "toy"},
                             {"difficulty", 10 * i}})
                 .dump()
          << '\n';
    return path.string();
  }

  Outcome run_on(const std::string& options, const std::string& folder, int steps) const {
    return train("data.dataset_name=null data.train_files=" + data() +
                 " data.train_batch_size=2 reward.rule=exact trainer.save_freq=1 "
                 "trainer.total_training_steps=" +
                 std::to_string(steps) +
                 " trainer.default_local_dir=" + (folder_ / folder).string() + " " + options);
  }

  nlohmann::json position(const std::string& folder, int step) const {
    return nlohmann::json::parse(read(folder_ / folder / ("global_step_" + std::to_string(step)) /
                                      "trainer.json"))["data_position"];
  }

  // Two runs of four steps, one of them in two halves.
  void compare_halves(const std::string& options) const {
    Outcome run = run_on(options, "whole", 4);
    ASSERT_EQ(run.code, 0) << run.output;
    for (const int steps : {2, 4}) {
      run = run_on(options, "halves", steps);
      ASSERT_EQ(run.code, 0) << run.output;
    }
    EXPECT_NE(run.output.find("continuing after step 2"), std::string::npos) << run.output;
    EXPECT_EQ(numbers(folder_ / "whole"), numbers(folder_ / "halves"));
    EXPECT_EQ(position("whole", 4), position("halves", 4));
  }
};

// Two files whose answers tell them apart; an epoch has as many rows as both together, four steps
// of four prompts with four responses each.
TEST_F(CurriculumTest, RowsComeFromTheFilesByTheirWeights) {
  fs::create_directories(folder_);
  std::string files;
  for (const char* answer : {"a", "b"}) {
    const fs::path path = folder_ / (std::string(answer) + ".jsonl");
    std::ofstream out(path);
    for (int i = 0; i < 8; ++i)
      out << nlohmann::json({{"prompt", std::string(1, static_cast<char>('a' + i % 4))},
                             {"answer", answer},
                             {"data_source", "toy"}})
                 .dump()
          << '\n';
    files += (files.empty() ? "" : ",") + path.string();
  }
  struct Case {
    const char* weights;
    std::map<std::string, int> rows;  // samples with each answer
  };
  for (const Case& one : {Case{"[1,0]", {{"a", 64}}}, Case{"[0,1]", {{"b", 64}}},
                          Case{"[3,1]", {{"a", 48}, {"b", 16}}}}) {
    SCOPED_TRACE(one.weights);
    const Outcome run =
        train("data.dataset_name=null data.train_files=[" + files +
              "] data.train_weights=" + one.weights +
              " reward.rule=exact trainer.total_training_steps=4 trainer.rollout_data_dir=" +
              (folder_ / "samples").string() +
              " trainer.default_local_dir=" + (folder_ / "weighted").string());
    ASSERT_EQ(run.code, 0) << run.output;
    std::map<std::string, int> rows;
    for (int step = 1; step <= 4; ++step) {
      std::ifstream in(folder_ / "samples" / (std::to_string(step) + ".jsonl"));
      for (std::string line; std::getline(in, line);)
        ++rows[nlohmann::json::parse(line)["gts"].get<std::string>()];
    }
    EXPECT_EQ(rows, one.rows);
    fs::remove_all(folder_ / "samples");
    fs::remove_all(folder_ / "weighted");
  }
}

TEST_F(CurriculumTest, AdarftMovesItsTargetAndResumes) {
  // Nothing scores below this, so that the target rises as far as it may in each step.
  compare_halves(
      "+data.adarft.enable=enable +data.adarft.beta=-1 +data.adarft.alpha=100 +data.adarft.eta=20 "
      "+data.adarft.d_max=50");
  EXPECT_EQ(position("whole", 1)["target"], 20.0);
  EXPECT_EQ(position("whole", 2)["target"], 40.0);
  EXPECT_EQ(position("whole", 4)["target"], 50.0);
}

TEST_F(CurriculumTest, ASamplerSaysWhichRowsComeAndGetsTheScores) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "backwards.py") << R"python(
from verl.experimental.dataset.sampler import AbstractCurriculumSampler


class Backwards(AbstractCurriculumSampler):
    def __init__(self, data_source, data_config):
        self.rows, self.told = len(data_source), []
        assert data_source[3]["difficulty"] == 30 and data_config["train_batch_size"] == 2

    def __iter__(self):
        return iter(range(self.rows - 1, -1, -1))

    def update(self, batch):
        assert len(batch) == 8
        self.told.append(sorted(set(int(row) for row in batch.non_tensor_batch["index"])))

    def state_dict(self):
        return {"told": self.told}

    def load_state_dict(self, state):
        self.told = state["told"]
)python";
  compare_halves("data.sampler.class_path=" + (folder_ / "backwards.py").string() +
                 " data.sampler.class_name=Backwards");
  EXPECT_EQ(position("whole", 4)["state"]["told"],
            nlohmann::json::parse("[[8, 9], [6, 7], [4, 5], [2, 3]]"));
}

// CoDaPO: every other step is of rows of the step before, and a run that was cut between the two
// goes on with them.
TEST_F(CurriculumTest, CodapoResumesIntoItsSecondPhase) {
  const std::string options =
      "algorithm.adv_estimator=codapo +algorithm.codapo_top_k=2 trainer.save_freq=1 ";
  Outcome run = train(options + "trainer.total_training_steps=4 trainer.default_local_dir=" +
                      (folder_ / "whole").string());
  ASSERT_EQ(run.code, 0) << run.output;
  for (const int steps : {1, 4}) {
    run = train(options + "trainer.total_training_steps=" + std::to_string(steps) +
                " trainer.default_local_dir=" + (folder_ / "parts").string());
    ASSERT_EQ(run.code, 0) << run.output;
  }
  EXPECT_NE(run.output.find("continuing after step 1"), std::string::npos) << run.output;
  EXPECT_EQ(numbers(folder_ / "whole"), numbers(folder_ / "parts"));
  const auto focus = [&](int step) {
    return nlohmann::json::parse(read(folder_ / "whole" / ("global_step_" + std::to_string(step)) /
                                      "trainer.json"))["focus"];
  };
  ASSERT_EQ(focus(1).size(), 4u);  // two rows, twice each
  EXPECT_EQ(focus(1)[0], focus(1)[2]);
  EXPECT_EQ(focus(1)[1], focus(1)[3]);
  EXPECT_NE(focus(1)[0], focus(1)[1]);
  EXPECT_EQ(focus(2).size(), 0u);
  EXPECT_EQ(focus(3).size(), 4u);
}

TEST_F(CurriculumTest, TwoOrdersAtOnceAreRefused) {
  const Outcome run = run_on(
      "+data.adarft.enable=true data.sampler.class_path=a.py data.sampler.class_name=A", "run", 1);
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.output.find("data.adarft.enable and data.sampler.class_path both choose the rows"),
            std::string::npos)
      << run.output;
}

}  // namespace
}  // namespace rl
