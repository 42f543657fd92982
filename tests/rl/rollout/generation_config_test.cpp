// generation_config.json, and the sampling that it asks for against what transformers draws from
// (make_warper_cases.py).
#include "rl/rollout/generation_config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "rl/rollout/sampler.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;

runtime::Result<GenerationConfig> parse(const char* text) {
  return GenerationConfig::from_json(json::parse(text), "g.json");
}

TEST(GenerationConfig, SaysHowToSample) {
  const SamplingParams defaults{.temperature = 0.0F, .max_new_tokens = 128};
  auto config = parse(
      R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.05, "max_new_tokens": 77, "eos_token_id": [1, 2],
                          "pad_token_id": 0, "_from_model_config": true, "transformers_version": "4.51.0"})");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_TRUE(config->unsupported.empty());
  EXPECT_TRUE(config->unknown.empty());
  const SamplingParams params = config->apply(defaults);
  EXPECT_EQ(params.temperature, 0.6F);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.top_p, 0.95F);
  EXPECT_EQ(params.min_p, 0.05F);
  EXPECT_EQ(params.repetition_penalty, 1.05F);
  EXPECT_EQ(params.max_new_tokens, 77);
}

TEST(GenerationConfig, LeftOutMeansWhatTransformersTakes) {
  const SamplingParams defaults{.temperature = 0.0F, .max_new_tokens = 128};
  EXPECT_EQ(parse(R"({"do_sample": true})")->apply(defaults).top_k, 50);
  EXPECT_EQ(parse(R"({"do_sample": true})")->apply(defaults).temperature, 1.0F);
  EXPECT_EQ(parse(R"({"do_sample": false, "temperature": 0.7})")
                ->apply({.temperature = 1.0F})
                .temperature,
            0.0F);
  EXPECT_EQ(parse(R"({"temperature": 0.7})")->apply(defaults).temperature, 0.0F);
  EXPECT_EQ(parse("{}")->apply(defaults).max_new_tokens, 128);
}

TEST(GenerationConfig, NamesWhatItDoesNotHave) {
  auto config = parse(
      R"({"num_beam_groups": 4, "no_repeat_ngram_size": 0, "suppress_tokens": [], "typical_p": 1.0, "guidance_scale": null, "force_words_ids": [[3]], "temprature": 0.5})");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_EQ(config->unsupported,
            (std::vector<std::string>{"force_words_ids is [[3]]", "num_beam_groups is 4"}));
  EXPECT_EQ(config->unknown, (std::vector<std::string>{"temprature"}));
  EXPECT_EQ(parse(R"({"num_beams": 4, "do_sample": true})")->unsupported,
            (std::vector<std::string>{"num_beams is 4 with do_sample"}));
}

TEST(GenerationConfig, NamesHowManyResponsesItAsksFor) {
  EXPECT_EQ(parse(R"({"num_return_sequences": 3})")->unknown,
            (std::vector<std::string>{kNumReturnSequences}));
  EXPECT_TRUE(parse(R"({"num_return_sequences": 1})")->unknown.empty());
}

TEST(GenerationConfig, SaysHowToSearchAndWhatNotToSay) {
  auto config = parse(
      R"({"num_beams": 4, "length_penalty": 0.6, "early_stopping": "never", "bad_words_ids": [[3], [4, 5]], "suppress_tokens": [7]})");
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  EXPECT_TRUE(config->unsupported.empty());
  const SamplingParams params = config->apply({.temperature = 0.0F, .bad_words = {{1}}});
  EXPECT_EQ(params.beam.width, 4);
  EXPECT_EQ(params.beam.length_penalty, 0.6F);
  EXPECT_EQ(params.beam.early_stopping, BeamSearchParams::Stop::kNever);
  EXPECT_EQ(params.bad_words, (std::vector<std::vector<std::int32_t>>{{1}, {3}, {4, 5}, {7}}));
  EXPECT_EQ(parse(R"({"stop_strings": "END"})")->apply({}).stop_strings,
            (std::vector<std::string>{"END"}));
  EXPECT_EQ(parse(R"({"num_beams": 1})")->apply({}).beam.width, 0);
}

TEST(GenerationConfig, RefusesDamageByName) {
  EXPECT_EQ(parse(R"({"temperature": "hot"})").status().message(),
            "g.json: temperature is \"hot\", should be a number");
  EXPECT_EQ(parse(R"({"top_k": 1.5})").status().message(),
            "g.json: top_k is 1.5, should be a small integer");
  EXPECT_EQ(parse(R"({"bad_words_ids": [3]})").status().message(),
            "g.json: bad_words_ids is [3], should be a list of lists of token ids");
  EXPECT_EQ(parse(R"({"early_stopping": 1})").status().message(),
            "g.json: early_stopping is 1, should be true, false or \"never\"");
  EXPECT_EQ(parse(R"({"stop_strings": [1]})").status().message(),
            "g.json: stop_strings is [1], should be a text or a list of texts");
  EXPECT_EQ(parse(R"({"do_sample": true, "top_p": 7})").status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(parse(R"({"repetition_penalty": 0})").status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(GenerationConfig::from_json(json::array(), "g.json").status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(GenerationConfig::load("/no/such/folder").ok());
}

TEST(Sampler, DrawsFromWhatTransformersDrawsFrom) {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/rollout/warper_cases.json");
  const json cases = json::parse(file);
  ASSERT_GE(cases.size(), 40u);
  kernel::ThreadPool pool(1);
  for (const json& item : cases) {
    const auto logits = item.at("logits").get<std::vector<float>>();
    const auto history = item.at("history").get<std::vector<std::int32_t>>();
    const auto expected = item.at("probabilities").get<std::vector<double>>();
    const json& given = item.at("params");
    SamplingParams params{.temperature = given.at("temperature"),
                          .top_p = given.at("top_p"),
                          .top_k = given.at("top_k"),
                          .min_p = given.at("min_p"),
                          .repetition_penalty = given.at("repetition_penalty")};
    constexpr int kDraws = 4000;
    std::vector<int> counts(logits.size());
    for (std::uint64_t position = 0; position < kDraws; ++position) {
      const SampleRow row{.params = &params,
                          .logits = logits,
                          .history = history,
                          .forbidden = {},
                          .position = position};
      SampledToken token;
      sample_tokens(pool, std::span(&row, 1), std::span(&token, 1));
      ASSERT_GE(token.id, 0);
      ++counts[static_cast<std::size_t>(token.id)];
    }
    for (std::size_t id = 0; id < logits.size(); ++id) {
      if (expected[id] == 0.0) {
        EXPECT_EQ(counts[id], 0) << item;
      }
      EXPECT_NEAR(counts[id] / double{kDraws}, expected[id], 0.04) << "id " << id << " of " << item;
    }
    params.temperature = 0.0F;
    const SampleRow row{.params = &params, .logits = logits, .history = history, .forbidden = {}};
    SampledToken token;
    sample_tokens(pool, std::span(&row, 1), std::span(&token, 1));
    EXPECT_EQ(token.id, item.at("greedy").get<std::int32_t>()) << item;
  }
}

}  // namespace
}  // namespace rl
