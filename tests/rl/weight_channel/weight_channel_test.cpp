// Weights from one process to another, over a real cluster.
#include "rl/actor/weight_channel.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "actors.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using namespace std::chrono_literals;
using runtime::ErrorCode;
using testing::Generator;
using testing::Learner;
using testing::Tokens;

class WeightChannel : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("STARLING_ADDRESS");
    ::setenv("STARLING_PROGRAM", STARLING_BIN_DIR "/starling", 1);
    ::setenv("STARLING_SESSION_ROOT", (folder_.path() / "s").c_str(), 1);
    static char name[] = "test_rl_weight_channel";
    static char* argv[] = {name, nullptr};
    runtime::RuntimeOptions options;
    options.start_arguments = {"--num-cpus", "4"};
    rt_ = std::make_unique<runtime::Runtime>(1, argv, options);
    testing::register_test_actors(*rt_);
    const runtime::Status started = rt_->start();
    ASSERT_TRUE(started.ok()) << started.to_string();
    learner_ = *rt_->spawn<Learner>({});
    generator_ = *rt_->spawn<Generator>({});
  }
  void TearDown() override { rt_.reset(); }

  runtime::Status publish(std::uint64_t version, std::uint64_t seed) {
    return rt_->get(learner_.call(&Learner::publish, version, seed), 20s);
  }
  runtime::Status wait(std::uint64_t version, std::int64_t milliseconds = 20'000) {
    return rt_->get(generator_.call(&Generator::wait, version, milliseconds), 30s);
  }
  Tokens generate(std::int64_t tokens, std::int64_t pause_after = -1, std::uint64_t version = 0,
                  OnNewWeights policy = OnNewWeights::kContinue) {
    const auto made = rt_->get(generator_.call(&Generator::generate, tokens, pause_after, version,
                                               static_cast<std::int32_t>(policy)),
                               30s);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? *made : Tokens();
  }

  // What an engine in this process says with the weights of that seed.
  static Tokens alone(std::uint64_t seed, std::int64_t tokens) {
    const auto model = testing::tiny_model(seed);
    const auto engine = Engine::create(*model);
    Request request{.prompt_ids = {5, 6, 7}};
    request.sampling = {.max_new_tokens = tokens, .seed = 9, .ignore_eos = true};
    const auto completions = (*engine)->generate(std::span(&request, 1));
    return {.ids = completions->at(0).ids, .logprobs = completions->at(0).logprobs, .versions = {}};
  }

  const support::TemporaryFolder folder_;
  std::unique_ptr<runtime::Runtime> rt_;
  runtime::ActorHandle<Learner> learner_;
  runtime::ActorHandle<Generator> generator_;
};

TEST_F(WeightChannel, AVersionIsTheTrainersWeightsToTheBit) {
  EXPECT_EQ(generate(20).logprobs, alone(1, 20).logprobs) << "what it was loaded with";
  ASSERT_TRUE(publish(1, 41).ok());
  ASSERT_TRUE(wait(1).ok());
  const Tokens first = generate(20);
  EXPECT_EQ(first.ids, alone(41, 20).ids);
  EXPECT_EQ(first.logprobs, alone(41, 20).logprobs);
  EXPECT_EQ(first.versions, std::vector<std::uint64_t>(20, 1));
  ASSERT_TRUE(publish(2, 42).ok());
  ASSERT_TRUE(publish(3, 43).ok());
  ASSERT_TRUE(wait(3).ok());
  EXPECT_EQ(generate(20).logprobs, alone(43, 20).logprobs) << "the newest, whatever came between";
}

TEST_F(WeightChannel, ARequestUnderWayGoesOnWithTheNewWeights) {
  ASSERT_TRUE(publish(7, 41).ok());
  const Tokens tokens = generate(20, /*pause_after=*/7, /*version=*/7);
  std::vector<std::uint64_t> versions(8, 0);
  versions.resize(20, 7);
  EXPECT_EQ(tokens.versions, versions) << "between two steps";
  const Tokens old = alone(1, 20);
  EXPECT_TRUE(std::equal(tokens.ids.begin(), tokens.ids.begin() + 8, old.ids.begin()));
  EXPECT_NE(tokens.logprobs, old.logprobs);
}

TEST_F(WeightChannel, OrBeginsAgainIfThePolicySaysSo) {
  ASSERT_TRUE(publish(7, 41).ok());
  const Tokens tokens = generate(20, 7, 7, OnNewWeights::kRestart);
  EXPECT_EQ(tokens.versions, std::vector<std::uint64_t>(20, 7));
  EXPECT_EQ(tokens.logprobs, alone(41, 20).logprobs);
}

TEST_F(WeightChannel, ErrorsNameTheVersionAndTheModel) {
  const runtime::Status late = wait(5, /*milliseconds=*/50);
  EXPECT_EQ(late.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_NE(late.message().find("version 5 has not come; there is 0"), std::string::npos)
      << late.message();
  ASSERT_TRUE(publish(5, 41).ok());
  EXPECT_EQ(publish(5, 42).code(), ErrorCode::kInvalidArgument) << "versions grow";
  ASSERT_TRUE(rt_->get(learner_.call(&Learner::publish_another_model, std::uint64_t{6}), 20s).ok());
  const runtime::Status other = wait(6);
  EXPECT_EQ(other.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(other.message().find("version 6 has"), std::string::npos) << other.message();
  ASSERT_TRUE(publish(7, 41).ok());
  EXPECT_TRUE(wait(7).ok()) << "a right one after a wrong one";
}

TEST_F(WeightChannel, WhatWasPublishedOutlivesItsTrainer) {
  ASSERT_TRUE(publish(1, 41).ok());
  ASSERT_TRUE(rt_->kill(learner_).ok());
  const auto late = rt_->spawn<Generator>({});
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE(
      rt_->get(late->call(&Generator::wait, std::uint64_t{1}, std::int64_t{20'000}), 30s).ok());
}

}  // namespace
}  // namespace rl
