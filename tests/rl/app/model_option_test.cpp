#include "rl/app/model_option.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "rl/worker/toy_model.h"
#include "tests/rl/app/offline_hub.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

TEST(ModelOption, ARevisionIsOfTheModelThatIsNamed) {
  ModelOption option;
  CLI::App app;
  option.add_to(app, "a folder");
  EXPECT_THROW(app.parse("--revision v2"), CLI::RequiresError);
  app.parse("--model org/name --revision v2");
  EXPECT_EQ(option.model, "org/name");
  EXPECT_EQ(option.revision, "v2");
}

TEST(ModelOption, IsOneOfItsGroup) {
  ModelOption option;
  CLI::App app;
  CLI::App* const group = app.add_option_group("what is read");
  group->add_flag("--toy");
  group->require_option(1);
  option.add_to(app, "a folder", group);
  EXPECT_THROW(app.parse(""), CLI::RequiredError);
  EXPECT_THROW(app.parse("--toy --model m"), CLI::RequiredError);
  app.parse("--model m --revision v2");
  EXPECT_EQ(option.model, "m");
}

class ModelOptionPlaces : public ::testing::Test {
 protected:
  ModelOptionPlaces() {
    EXPECT_TRUE(
        make_toy_model(model_.path(), {.layers = 1, .hidden_size = 16, .intermediate_size = 16})
            .ok());
  }
  static runtime::Result<std::filesystem::path> find(const std::string& model,
                                                     const std::string& revision = "") {
    return ModelOption{.model = model, .revision = revision}.locate(HubNeed::kModel);
  }

  const support::TemporaryFolder model_;
  const OfflineHub hub_;
};

TEST_F(ModelOptionPlaces, APathIsItself) {
  const auto found = find(model_.path().string());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(*found, model_.path());
}

TEST_F(ModelOptionPlaces, ANameIsOfTheRevisionThatIsGiven) {
  const auto main = hub_.add("small", "main", model_.path());
  const auto tagged = hub_.add("small", "v2", model_.path());
  EXPECT_EQ(find("small").value_or(""), main);
  EXPECT_EQ(find("small", "v2").value_or(""), tagged);
  EXPECT_EQ(find("small@v2").value_or(""), tagged);
}

TEST_F(ModelOptionPlaces, WhatIsNowhereIsNamed) {
  support::expect_failure(find("org/none").status(), runtime::ErrorCode::kNotFound, {"org/none"});
  support::expect_failure(find(model_.file("none.gguf")).status(), runtime::ErrorCode::kNotFound,
                          {model_.file("none.gguf")});
}

}  // namespace
}  // namespace rl
