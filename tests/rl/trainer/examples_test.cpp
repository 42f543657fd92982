// examples/ppo.cpp is a controller that users copy: it must run as it stands, and learn.
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

TEST_F(TrainerTest, TheExampleOfPpoLearnsTheToyTask) {
  const Outcome run =
      shell(STARLING_BIN_DIR "/ppo 40 trainer.default_local_dir=" + folder_.string());
  ASSERT_EQ(run.code, 0) << run.output;
  std::vector<double> scores;
  for (std::size_t at = 0; (at = run.output.find("mean score ", at)) != std::string::npos;)
    scores.push_back(std::stod(run.output.substr(at += 11)));
  ASSERT_EQ(scores.size(), 8u) << run.output;
  EXPECT_LT(scores.front(), 0.25) << run.output;
  EXPECT_GT(scores.back(), 0.4) << run.output;
}

}  // namespace
}  // namespace rl
