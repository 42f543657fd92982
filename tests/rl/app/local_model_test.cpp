#include "rl/app/local_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "rl/worker/toy_model.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;

class LocalModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made = make_toy_model(
        folder_.path(), {.layers = 1, .hidden_size = 16, .intermediate_size = 16, .positions = 32});
    ASSERT_TRUE(made.ok()) << made.to_string();
  }
  Result<LocalModel> load(LocalModelOptions options = {}) const {
    options.threads = 1;
    options.kv_cache_mib = 16;
    return LocalModel::load(folder_.path(), options);
  }
  static Request asked(std::size_t prompt_tokens, std::uint64_t seed) {
    Request request{.prompt_ids = std::vector<std::int32_t>(prompt_tokens, 3)};
    request.sampling.max_new_tokens = 2;
    request.sampling.seed = seed;
    request.sampling.ignore_eos = true;
    return request;
  }

  struct Ran {
    bool good = false;
    std::vector<RequestId> delivered;
    std::string said;  // on stderr
  };
  static Ran run(LocalModel& model, const std::vector<Request>& requests) {
    Ran ran;
    ::testing::internal::CaptureStderr();
    ran.good = model.run(
        requests, "generating", [](std::size_t i) { return "row " + std::to_string(i); },
        [&](const Completion& completion) { ran.delivered.push_back(completion.request); });
    ran.said = ::testing::internal::GetCapturedStderr();
    return ran;
  }

  support::TemporaryFolder folder_;
};

TEST_F(LocalModelTest, CompletionsAreDeliveredInTheOrderOfTheirRequests) {
  auto model = load();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  std::vector<Request> requests;
  std::vector<RequestId> expected;
  for (std::size_t i = 0; i < 600; ++i) {  // more than are run at once
    requests.push_back(asked(1 + i % 5, i));
    expected.push_back(i);
  }
  const Ran ran = run(*model, requests);
  EXPECT_TRUE(ran.good) << ran.said;
  EXPECT_EQ(ran.delivered, expected);
  EXPECT_EQ(ran.said, "") << "no terminal, no line of progress";
}

TEST_F(LocalModelTest, ARequestThatFailsIsToldWithItsPlaceAndTheOthersAreDelivered) {
  auto model = load();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const Ran ran = run(*model, {asked(2, 1), asked(100, 2), asked(2, 3)});
  EXPECT_FALSE(ran.good);
  EXPECT_EQ(ran.delivered, (std::vector<RequestId>{0, 2}));
  EXPECT_NE(ran.said.find("row 1: "), std::string::npos) << ran.said;
}

TEST_F(LocalModelTest, NoRequestsAreNoFailure) {
  auto model = load();
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_TRUE(run(*model, {}).good);
}

TEST_F(LocalModelTest, SaysWhatCannotBeLoaded) {
  LocalModelOptions elsewhere;
  elsewhere.adapter = "folder";
  elsewhere.device = "cuda";
  support::expect_failure(load(elsewhere).status(), ErrorCode::kUnimplemented,
                          {"--adapter with --device cuda"});
  LocalModelOptions no_adapter;
  no_adapter.adapter = folder_.file("none");
  EXPECT_FALSE(load(no_adapter).ok());
  std::filesystem::remove(folder_.path() / "config.json");
  EXPECT_FALSE(load().ok());
}

}  // namespace
}  // namespace rl
