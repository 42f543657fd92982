// `starling train --check` as a user runs it.
#include "rl/app/check/check_command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace rl {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string text;
};

Outcome shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  for (std::size_t read = 0; (read = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    outcome.text.append(buffer.data(), read);
  outcome.exit_code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

const std::string kCheck = STARLING_BIN_DIR "/starling train --check ";

TEST(CheckCommand, ExitsByWhetherSomethingIsRefused) {
  const Outcome good = shell(
      kCheck +
      "data.train_files=/nowhere/x.parquet actor_rollout_ref.model.path=/nowhere trainer.nnodes=2");
  EXPECT_EQ(good.exit_code, 0) << good.text;
  EXPECT_NE(good.text.find("3 keys: 3 used, 0 without effect, 0 refused"), std::string::npos)
      << good.text;
  const Outcome bad = shell(kCheck + "trainer.deterministic=false");
  EXPECT_EQ(bad.exit_code, 1) << bad.text;
  EXPECT_EQ(shell(kCheck + "--nonsense").exit_code, 2);
}

TEST(CheckCommand, PrintsJson) {
  const Outcome outcome = shell(kCheck + "--json trainer.nnodes=2");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(outcome.text)["keys"][0]["key"], "trainer.nnodes");
}

TEST(CheckCommand, LoadsNoLibTorch) {
  const Outcome libraries =
      shell("ldd " STARLING_BIN_DIR "/starling " STARLING_BIN_DIR "/starling-config");
  ASSERT_NE(libraries.text.find("libyaml-cpp"), std::string::npos) << libraries.text;
  for (const char* heavy : {"torch", "libc10", "cudart"})
    EXPECT_EQ(libraries.text.find(heavy), std::string::npos) << libraries.text;
}

TEST(CheckCommand, ReadsFilesAsHydraNamesThem) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("starling_check_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "mine.yaml") << "hydra:\n  searchpath: [file://verl]\ndefaults: "
                                         "[ppo_trainer, _self_]\ndata:\n  max_prompt_length: 99\n";
  const Outcome outcome =
      shell(kCheck + "--config-path=" + folder.string() + " --config-name='mine' trainer.nnodes=2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("data.max_prompt_length = 99"), std::string::npos) << outcome.text;
  EXPECT_EQ(
      shell(kCheck + "--config-path=./config --config-name=ppo_megatron_trainer.yaml").exit_code,
      0);
  const Outcome missing =
      shell(kCheck + "--config-path=" + folder.string() + " --config-name=other");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.text.find("other.yaml"), std::string::npos) << missing.text;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rl
