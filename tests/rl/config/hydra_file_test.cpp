#include "rl/config/hydra_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class HydraFileTest : public ::testing::Test {
 protected:
  HydraFileTest() { std::ofstream(folder_.file("mine.yaml")) << "a: 1\n"; }

  runtime::Result<std::optional<std::filesystem::path>> find(const std::string& name,
                                                             const std::string& file = "") const {
    return find_config_file(
        {.file = file, .hydra_path = folder_.path().string(), .hydra_name = name});
  }

  const support::TemporaryFolder folder_;
};

TEST_F(HydraFileTest, ANameMayHaveItsEndingOrNot) {
  EXPECT_EQ(*find("mine"), folder_.path() / "mine.yaml");
  EXPECT_EQ(*find("mine.yaml"), folder_.path() / "mine.yaml");
  std::ofstream(folder_.file("v1.5.yaml")) << "a: 1\n";
  EXPECT_EQ(*find("v1.5"), folder_.path() / "v1.5.yaml");
}

// The defaults are made of verl's own files, which need not be on this machine.
TEST_F(HydraFileTest, VerlsOwnNamesNeedNoFileAndGiveWayToOneThatIsThere) {
  EXPECT_EQ(*find("ppo_trainer"), std::nullopt);
  EXPECT_EQ(*find(""), std::nullopt) << "the name of verl's trainer is its own";
  std::ofstream(folder_.file("ppo_trainer.yaml")) << "a: 1\n";
  EXPECT_EQ(*find("ppo_trainer"), folder_.path() / "ppo_trainer.yaml");
  EXPECT_EQ(*find(""), folder_.path() / "ppo_trainer.yaml");
  EXPECT_EQ(*find_config_file({.file = "", .hydra_path = "", .hydra_name = ""}), std::nullopt);
}

TEST_F(HydraFileTest, AnotherNameWithoutAFileIsNamedWithTheCure) {
  support::expect_failure(find("other").status(), runtime::ErrorCode::kNotFound,
                          {"--config-name=other", folder_.file("other.yaml"), "--config FILE"});
}

TEST_F(HydraFileTest, OneWayAtATime) {
  support::expect_failure(find("mine", "/some/file").status(), runtime::ErrorCode::kInvalidArgument,
                          {"--config-path"});
  EXPECT_EQ(*find_config_file({.file = "/some/file", .hydra_path = "", .hydra_name = ""}),
            "/some/file");
}

}  // namespace
}  // namespace rl
