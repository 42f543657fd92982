// The configuration of a small run of the toy, with a model and a folder that the test has made.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "rl/config/config.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {

class ToyRunTest : public ::testing::Test {
 protected:
  ToyRunTest() {
    std::filesystem::create_directories(model());
    EXPECT_TRUE(
        make_toy_model(model(), {.layers = 1, .hidden_size = 16, .intermediate_size = 16}).ok());
  }

  std::filesystem::path model() const { return folder_.path() / "model"; }
  std::filesystem::path run() const { return folder_.path() / "run"; }

  /// Ten rows, four prompts a step, and what the test sets besides.
  Config config(const std::vector<std::string>& overrides = {}) const {
    std::vector<std::string> all = {"data.dataset_name=toy",
                                    "data.toy.rows=10",
                                    "data.train_batch_size=4",
                                    "data.max_prompt_length=32",
                                    "data.max_response_length=16",
                                    "actor_rollout_ref.model.path=" + model().string(),
                                    "trainer.default_local_dir=" + run().string()};
    all.insert(all.end(), overrides.begin(), overrides.end());
    auto config = Config::load({.file = std::nullopt, .overrides = std::move(all)});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return std::move(*config);
  }
  static TrainerOptions options(const Config& config) {
    auto options = TrainerOptions::from_config(config);
    EXPECT_TRUE(options.ok()) << options.status().to_string();
    return std::move(*options);
  }
  /// A file of rows in the test's folder.
  std::string rows(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }

  const support::TemporaryFolder folder_;
};

}  // namespace rl
