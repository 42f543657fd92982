#include "rl/checkpoint/model_identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class ModelIdentityTest : public ::testing::Test {
 protected:
  ModelIdentity made(const std::string& name, std::uint64_t seed, std::int64_t layers = 1) const {
    const std::filesystem::path path = folder_.path() / name;
    EXPECT_TRUE(
        make_toy_model(path,
                       {.layers = layers, .hidden_size = 32, .intermediate_size = 32, .seed = seed})
            .ok());
    const auto identity = identify_model(name, path);
    EXPECT_TRUE(identity.ok()) << identity.status().to_string();
    return identity.value_or(ModelIdentity{});
  }

  support::TemporaryFolder folder_;
};

TEST_F(ModelIdentityTest, IsOfTheWeightsAndNotOfTheirPlace) {
  const ModelIdentity one = made("one", 1);
  EXPECT_EQ(one.fingerprint.size(), 32u);
  EXPECT_EQ(made("copy", 1).fingerprint, one.fingerprint);
  EXPECT_NE(made("other", 2).fingerprint, one.fingerprint);
  EXPECT_NE(made("deeper", 1, 2).fingerprint, one.fingerprint);
  EXPECT_FALSE(identify_model("none", folder_.path() / "none").ok());
}

TEST_F(ModelIdentityTest, AnotherModelIsRefusedByBothNames) {
  const ModelIdentity one = made("one", 1), copy = made("copy", 1), other = made("other", 2);
  const nlohmann::ordered_json state{{ModelIdentity::kStateKey, one.to_json()}};
  EXPECT_TRUE(check_same_model(state, "run/global_step_2", one, "model.path").ok());
  EXPECT_TRUE(check_same_model(state, "run/global_step_2", copy, "model.path").ok());
  const runtime::Status refused = check_same_model(state, "run/global_step_2", other, "model.path");
  EXPECT_EQ(refused.code(), runtime::ErrorCode::kInvalidArgument);
  for (const char* part : {"run/global_step_2: of a run of the model one, and model.path is other",
                           "trainer.default_local_dir", "trainer.resume_mode=disable"})
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
  const runtime::Status replaced =
      check_same_model(state, "run/global_step_2", {"one", other.fingerprint}, "model.path");
  EXPECT_NE(replaced.message().find("one as it was then, and model.path=one has other weights now"),
            std::string::npos)
      << replaced.message();
  ModelIdentity adapter = one;
  adapter.adapter = true;
  const runtime::Status adapted = check_same_model(state, "run", adapter, "model.path");
  EXPECT_EQ(adapted.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(
      adapted.message().find("trained all weights of one, and this one trains a LoRA adapter"),
      std::string::npos)
      << adapted.message();
  // Of an earlier version, or not understood.
  for (const char* text : {"{}", R"({"model": "one"})", R"({"model": {"name": "one"}})"})
    EXPECT_TRUE(
        check_same_model(nlohmann::ordered_json::parse(text), "run", other, "model.path").ok())
        << text;
}

}  // namespace
}  // namespace rl
