// On-policy distillation from the command line: a teacher that can do the toy task, and a student
// that cannot.
#include <cmath>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class DistillationTest : public TrainerTest {
 protected:
  // A model that was shown the task's answers.
  std::string teacher() const {
    const fs::path run = folder_ / "teacher";
    if (!fs::exists(run)) {
      const Outcome made = train(
          "sft.steps=80 sft.lr=3e-3 actor_rollout_ref.actor.optim.lr=0 "
          "trainer.total_training_steps=1 trainer.save_freq=1 trainer.default_local_dir=" +
          run.string());
      EXPECT_EQ(made.code, 0) << made.output;
    }
    return (run / "global_step_1/actor/huggingface").string();
  }

  Outcome distill(const std::string& arguments, const std::string& name) const {
    return train("distillation.enabled=true distillation.teacher_models.teacher_model.model_path=" +
                 teacher() + " " + arguments +
                 " trainer.default_local_dir=" + (folder_ / name).string());
  }

  // Of `metric` over steps [first, last).
  static double mean(const std::vector<nlohmann::json>& steps, const char* metric,
                     std::size_t first, std::size_t last) {
    double sum = 0.0;
    for (std::size_t i = first; i < last; ++i) sum += steps[i].at(metric).get<double>();
    return sum / static_cast<double>(last - first);
  }
};

constexpr const char* kLoss = "distillation.distillation_loss.";

// As verl's scripts ask for it: the teacher alone, by the policy gradient.
const std::string kOnPolicy = std::string(kLoss) + "loss_mode=k1 " + kLoss +
                              "use_policy_gradient=true " + kLoss + "use_task_rewards=false " +
                              kLoss + "loss_max_clamp=10 ";

TEST_F(DistillationTest, TheStudentComesToSayWhatTheTeacherDoes) {
  for (const auto& [name, mode] :
       {std::pair<std::string, std::string>{"k1", kOnPolicy},
        {"k2", std::string(kLoss) + "loss_mode=k2 " + kLoss + "use_task_rewards=false "}}) {
    SCOPED_TRACE(name);
    const Outcome run = distill(mode +
                                    "trainer.total_training_steps=100 data.train_batch_size=8 "
                                    "actor_rollout_ref.actor.optim.lr=3e-3",
                                name);
    ASSERT_EQ(run.code, 0) << run.output;
    const std::vector<nlohmann::json> steps = steps_of(folder_ / name);
    ASSERT_EQ(steps.size(), 100u);
    const double before = mean(steps, "distillation/kl", 0, 10);
    const double after = mean(steps, "distillation/kl", 90, 100);
    EXPECT_GT(before, 0.2) << "they differ to begin with";
    EXPECT_LT(after, before / 2);
    EXPECT_GT(mean(steps, "critic/score/mean", 90, 100), mean(steps, "critic/score/mean", 0, 10))
        << "the task came with it";
    EXPECT_FALSE(steps.front().contains("actor/pg_loss")) << "no reward was learned from";
    EXPECT_TRUE(steps.front().contains("timing_s/teacher"));
  }
}

TEST_F(DistillationTest, RewardsAreLearnedFromAlongWithTheTeacher) {
  const Outcome run = distill(
      "trainer.total_training_steps=3 algorithm.filter_groups.enable=true "
      "actor_rollout_ref.actor.use_kl_loss=true",
      "both");
  ASSERT_EQ(run.code, 0) << run.output;
  for (const nlohmann::json& step : steps_of(folder_ / "both")) {
    for (const char* metric : {"actor/pg_loss", "actor/kl_loss", "distillation/loss",
                               "distillation/kl", "distillation/abs_loss"}) {
      ASSERT_TRUE(step.contains(metric)) << metric;
      EXPECT_TRUE(std::isfinite(step[metric].get<double>())) << metric;
    }
  }
}

TEST_F(DistillationTest, AResumedRunRepeatsTheNumbers) {
  const std::string common = kOnPolicy + "trainer.save_freq=2 ";
  Outcome run = distill(common + "trainer.total_training_steps=4", "whole");
  ASSERT_EQ(run.code, 0) << run.output;
  for (const int steps : {2, 4}) {
    run = distill(common + "trainer.total_training_steps=" + std::to_string(steps), "halves");
    ASSERT_EQ(run.code, 0) << run.output;
  }
  EXPECT_NE(run.output.find("continuing after step 2"), std::string::npos) << run.output;
  EXPECT_EQ(numbers(folder_ / "whole"), numbers(folder_ / "halves"));
  const char* weights = "global_step_4/actor/huggingface/model.safetensors";
  EXPECT_EQ(read(folder_ / "whole" / weights), read(folder_ / "halves" / weights));
}

TEST_F(DistillationTest, TwoWorkersTakeTheStepsOfOne) {
  for (const char* workers : {"1", "2"}) {
    const Outcome run = distill(
        kOnPolicy +
            "trainer.total_training_steps=3 trainer.cpus_per_worker=1 trainer.n_gpus_per_node=" +
            workers,
        std::string("workers") + workers);
    ASSERT_EQ(run.code, 0) << run.output;
  }
  const auto one = steps_of(folder_ / "workers1");
  const auto two = steps_of(folder_ / "workers2");
  ASSERT_EQ(one.size(), 3u);
  ASSERT_EQ(two.size(), 3u);
  for (std::size_t step = 0; step < one.size(); ++step) {
    for (const char* metric : {"distillation/kl", "distillation/loss", "distillation/abs_loss",
                               "critic/score/mean", "actor/grad_norm"}) {
      EXPECT_NEAR(one[step][metric].get<double>(), two[step][metric].get<double>(), 1e-4)
          << metric << " in step " << step + 1;
    }
  }
}

// The student does not change, and for some rows the teacher is the student itself. What the other
// teacher says of the rest is all there is.
TEST_F(DistillationTest, OfSeveralTeachersEachScoresTheSamplesOfItsRows) {
  fs::create_directories(folder_);
  const fs::path data = folder_ / "rows.jsonl";
  std::ofstream rows(data);
  for (int i = 0; i < 8; ++i)
    rows << R"({"prompt":"ab","answer":"b","data_source":")" << (i % 3 == 0 ? "maths" : "code")
         << "\"}\n";
  rows.close();
  const std::string common = kOnPolicy +
                             "data.dataset_name=null data.train_files=" + data.string() +
                             " reward.rule=exact actor_rollout_ref.actor.optim.lr=0 "
                             "trainer.total_training_steps=2 trainer.cpus_per_worker=1 ";
  const auto kl_with = [&](const std::string& maths, const std::string& code,
                           const std::string& name, const std::string& more) {
    const std::string models = " distillation.teacher_models.";
    const Outcome run = train("distillation.enabled=true " + common + models +
                              "first.model_path=" + maths + models + "first.key=maths" + models +
                              "second.model_path=" + code + models + "second.key=code " + more +
                              " trainer.default_local_dir=" + (folder_ / name).string());
    EXPECT_EQ(run.code, 0) << run.output;
    std::vector<double> kl;
    for (const nlohmann::json& step : steps_of(folder_ / name))
      kl.push_back(step.at("distillation/kl").get<double>());
    return kl;
  };
  const Outcome alone = distill(common, "alone");
  ASSERT_EQ(alone.code, 0) << alone.output;
  const std::vector<nlohmann::json> steps = steps_of(folder_ / "alone");
  const std::vector<double> of_maths = kl_with(teacher(), model(), "maths", ""),
                            of_code =
                                kl_with(model(), teacher(), "code", "trainer.n_gpus_per_node=2");
  ASSERT_EQ(steps.size(), 2u);
  ASSERT_EQ(of_maths.size(), 2u);
  ASSERT_EQ(of_code.size(), 2u);
  for (std::size_t step = 0; step < 2; ++step) {
    EXPECT_GT(of_maths[step], 0.01);
    EXPECT_GT(of_code[step], 0.01);
    EXPECT_NEAR(of_maths[step] + of_code[step], steps[step].at("distillation/kl").get<double>(),
                1e-4)
        << "in step " << step + 1;
  }
}

TEST_F(DistillationTest, ARowForNoTeacherIsToldBeforeAnyStep) {
  const std::string models = " distillation.teacher_models.";
  const Outcome run = train("distillation.enabled=true" + models + "first.model_path=" + model() +
                            models + "first.key=toy" + models + "second.model_path=" + model() +
                            models + "second.key=other trainer.total_training_steps=1");
  EXPECT_EQ(run.code, 0) << run.output;
  const Outcome none =
      train("distillation.enabled=true" + models + "first.model_path=" + model() + models +
            "first.key=maths" + models + "second.model_path=" + model() + models +
            "second.key=code trainer.default_local_dir=" + (folder_ / "none").string());
  EXPECT_NE(none.code, 0);
  EXPECT_NE(none.output.find("its 'data_source' (distillation.teacher_key) is 'toy', and there are "
                             "teachers for maths, code"),
            std::string::npos)
      << none.output;
  EXPECT_EQ(numbers(folder_ / "none").size(), 0u);
}

TEST_F(DistillationTest, ATeacherThatDoesNotFitIsToldBeforeAnyStep) {
  Outcome run = train("distillation.enabled=true");
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("distillation.teacher_models.teacher_model.model_path"),
            std::string::npos)
      << run.output;

  // Of another vocabulary: two letters have changed places.
  const fs::path other = folder_ / "other";
  ASSERT_TRUE(
      make_toy_model(other, {.layers = 1, .hidden_size = 32, .intermediate_size = 32}).ok());
  std::string tokenizer = read(other / "tokenizer.json");
  const std::size_t first = tokenizer.find("\"a\":");
  const std::size_t second = tokenizer.find("\"b\":");
  ASSERT_TRUE(first != std::string::npos && second != std::string::npos)
      << tokenizer.substr(0, 2000);
  std::swap(tokenizer[first + 1], tokenizer[second + 1]);
  std::ofstream(other / "tokenizer.json") << tokenizer;
  run = train("distillation.enabled=true distillation.teacher_models.teacher_model.model_path=" +
              other.string());
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("in the teacher " + other.string()), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("in the student " + model()), std::string::npos) << run.output;

  // Of too short a context.
  const fs::path brief = folder_ / "brief";
  ASSERT_TRUE(make_toy_model(
                  brief, {.layers = 1, .hidden_size = 32, .intermediate_size = 32, .positions = 16})
                  .ok());
  run = train("distillation.enabled=true distillation.teacher_models.teacher_model.model_path=" +
              brief.string());
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("reads at most 16 tokens"), std::string::npos) << run.output;
  EXPECT_EQ(numbers(folder_ / "run").size(), 0u);
}

}  // namespace
}  // namespace rl
