// The commands that train, up to where a cluster would start.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "rl/app/commands.h"
#include "rl/app/preference.h"
#include "rl/app/sft.h"
#include "tests/rl/app/command_run.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class TrainingCommands : public ::testing::Test {
 protected:
  using Function = int (*)(runtime::Runtime&, int, char**);

  CommandRun run(Function command, const std::vector<std::string>& arguments) {
    return run_here([&](int argc, char** argv) { return command(runtime_, argc, argv); },
                    arguments);
  }
  // The words of the command line that --help gives as an example.
  std::vector<std::string> example_of(const TrainingCommand& command) {
    const CommandRun help = run(command.run, {command.name, "--help"});
    EXPECT_EQ(help.code, 0) << help.error;
    const std::string begin = "Example:\n  starling ";
    const std::size_t at = help.out.find(begin), end = help.out.find("Without a running cluster");
    EXPECT_TRUE(at < end && end != std::string::npos) << help.out;
    if (at >= end || end == std::string::npos) return {};
    std::istringstream text(help.out.substr(at + begin.size(), end - at - begin.size()));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    return words;
  }

  const support::ScopedVariable address_{"STARLING_ADDRESS", nullptr};
  const support::TemporaryFolder folder_;
  char name_[5] = "test";
  char* arguments_[2] = {name_, nullptr};
  runtime::Runtime runtime_{1, arguments_};  // it is not started
};

TEST_F(TrainingCommands, TheirExamplesWork) {
  for (const TrainingCommand& command : kTrainingCommands) {
    std::vector<std::string> words = example_of(command);
    ASSERT_FALSE(words.empty());
    EXPECT_EQ(words[0], command.name);
    std::replace(words.begin(), words.end(), std::string("actor_rollout_ref.model.path=DIR"),
                 std::string("actor_rollout_ref.model.path=toy"));
    for (const std::string& more : {std::string("--dry-run"), std::string("--private"),
                                    "trainer.default_local_dir=" + folder_.file("run")})
      words.push_back(more);
    const CommandRun planned = run(command.run, words);
    EXPECT_EQ(planned.code, 0) << command.name << ": " << planned.error;
    EXPECT_NE(planned.out.find("memory of each process"), std::string::npos)
        << command.name << ": " << planned.out;
  }
}

TEST_F(TrainingCommands, StagesHaveTheirOwnKeys) {
  const std::vector<std::string> plan = {"--dry-run",
                                         "--private",
                                         "data.dataset_name=toy",
                                         "data.train_batch_size=8",
                                         "data.max_length=64",
                                         "model.path=toy",
                                         "trainer.default_local_dir=" + folder_.file("run")};
  const auto planned = [&](Function command, const std::string& name, const std::string& key) {
    std::vector<std::string> arguments = plan;
    arguments.insert(arguments.begin(), name);
    arguments.push_back(key);
    return run(command, arguments);
  };
  EXPECT_EQ(planned(dpo_command, "dpo", "preference.label_smoothing=0.1").code, 0);
  EXPECT_EQ(planned(kto_command, "kto", "preference.label_smoothing=0.1").code, 1);
  EXPECT_EQ(planned(kto_command, "kto", "preference.beta=0.1").code, 0);
  EXPECT_EQ(planned(rm_command, "rm", "preference.beta=0.1").code, 1);
  EXPECT_EQ(planned(sft_command, "sft", "preference.beta=0.1").code, 1);
}

}  // namespace
}  // namespace rl
