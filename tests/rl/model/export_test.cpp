// `starling-rl export` as a user runs it, and what it wrote read by the real transformers where
// they are installed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int exit = -1;
  std::string out;
  std::string err;
};

class Export : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = fs::path(STARLING_BIN_DIR) / "starling-rl";
    if (!fs::exists(program_)) GTEST_SKIP() << program_ << " is not built";
    folder_ = fs::temp_directory_path() / ("starling_export_test_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string text(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

  Outcome run(const std::string& command) const {
    const std::string redirected =
        command + " >" + (folder_ / "stdout").string() + " 2>" + (folder_ / "stderr").string();
    const int status = std::system(redirected.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text(folder_ / "stdout"),
            text(folder_ / "stderr")};
  }

  Outcome run_export(const std::string& arguments) const {
    return run(program_.string() + " export " + arguments);
  }

  fs::path program_;
  fs::path folder_;
};

TEST_F(Export, WritesAWholeFolderOnceAndLeavesNothingElse) {
  const std::string model = (testing::fixtures() / "models" / "llama").string();
  const std::string out = (folder_ / "out").string();
  const Outcome first = run_export("--model " + model + " --out " + out);
  ASSERT_EQ(first.exit, 0) << first.err;
  const nlohmann::json line = nlohmann::json::parse(first.out, nullptr, false);
  EXPECT_EQ(line["family"], "llama");
  EXPECT_EQ(line["parameters"], 57072);
  EXPECT_TRUE(fs::exists(folder_ / "out" / "model.safetensors"));
  EXPECT_NE(first.err.find("no tokenizer"), std::string::npos) << first.err;

  const Outcome again = run_export("--model " + model + " --out " + out);
  EXPECT_EQ(again.exit, 1);
  EXPECT_NE(again.err.find("already there"), std::string::npos) << again.err;
  std::size_t left = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) left += entry.is_directory();
  EXPECT_EQ(left, 1U);
}

TEST_F(Export, MistakesHaveTheirExitCodes) {
  EXPECT_EQ(run_export("--out " + (folder_ / "x").string()).exit, 2);
  EXPECT_EQ(run_export("--adapter a --checkpoint b --out " + (folder_ / "x").string()).exit, 2);
  const Outcome both =
      run_export("--model a --checkpoint " + (testing::fixtures() / "models/llama").string() +
                 " --out " + (folder_ / "x").string());
  EXPECT_EQ(both.exit, 1);
  EXPECT_NE(both.err.find("leave out --model"), std::string::npos) << both.err;
  const Outcome missing = run_export("--model " + (folder_ / "nowhere").string() + " --out " +
                                     (folder_ / "x").string());
  EXPECT_EQ(missing.exit, 1);
  EXPECT_NE(missing.err.find("nowhere"), std::string::npos) << missing.err;
  fs::create_directories(folder_ / "unknown");
  std::ofstream(folder_ / "unknown" / "config.json") << R"({"model_type":"nobodys_family"})";
  const Outcome refused = run_export("--model " + (folder_ / "unknown").string() + " --out " +
                                     (folder_ / "x").string());
  EXPECT_EQ(refused.exit, 1);
  EXPECT_NE(refused.err.find("nobodys_family"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(Export, TransformersLoadItToEqualLogits) {
  const char* python = std::getenv("STARLING_PYTHON");  // one with torch and transformers
  const auto gguf = testing::smollm2_gguf();
  const Outcome outcome = run(
      (python != nullptr ? python : "python3") +
      std::string(" " STARLING_SOURCE_DIR "/tests/rl/model/check_with_transformers.py ") +
      program_.string() + " " + testing::fixtures().string() + (gguf ? " " + gguf->string() : ""));
  constexpr int kSkipped = 77;
  if (outcome.exit == kSkipped || outcome.exit == 127)
    GTEST_SKIP() << "needs transformers: set STARLING_PYTHON to a python that has them";
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace rl
