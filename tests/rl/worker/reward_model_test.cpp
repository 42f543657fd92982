// Reward models: transformers' numbers, whatever a conversation stands next to, and conversations
// written by the reward model's own template.
#include "rl/worker/reward_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>

#include "rl/comm/thread_links.h"
#include "rl/data/toy.h"
#include "rl/model/head.h"
#include "rl/model/save.h"
#include "rl/reward/reward_function.h"
#include "rl/worker/toy_model.h"
#include "tests/rl/model/fixtures.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using runtime::Result;
using Ids = std::vector<std::int32_t>;

// Without a chat template.
void write_tokenizer(const fs::path& folder) {
  json config = json::parse(toy_tokenizer_config_json());
  config.erase("chat_template");
  std::ofstream(folder / "tokenizer.json") << toy_tokenizer_json();
  std::ofstream(folder / "tokenizer_config.json") << config.dump();
}

// The numbers in lists of numbers, or of such lists, in order.
std::vector<float> flatten(const json& values) {
  if (!values.is_array()) return {values.get<float>()};
  std::vector<float> flat;
  for (const json& value : values) {
    const std::vector<float> part = flatten(value);
    flat.insert(flat.end(), part.begin(), part.end());
  }
  return flat;
}

// The fixture's classifier as a folder, with a tokenizer that plays no part in its numbers.
void write_classifier(const json& reference, const fs::path& folder) {
  const bool of_tokens = reference["task"] == "token";
  const fs::path base = testing::fixtures() / "models" / reference["model"].get<std::string>();
  const auto labels = static_cast<std::int64_t>(reference["weight"].size());
  const ModelConfig config = with_task(
      *ModelConfig::load(base),
      of_tokens ? ModelTask::kTokenClassification : ModelTask::kSequenceClassification, labels);
  const auto model = Transformer::load(config, base, /*head_seed=*/1);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const auto fill = [&](const std::string& name, const json& values) {
    const std::vector<float> flat = flatten(values);
    const at::Tensor view =
        (*model)->parameters().view(reference["head"].get<std::string>() + name);
    ASSERT_EQ(view.numel(), static_cast<std::int64_t>(flat.size()));
    std::copy(flat.begin(), flat.end(), view.mutable_data_ptr<float>());
  };
  fill(".weight", reference["weight"]);
  if (!reference["bias"].is_null()) fill(".bias", reference["bias"]);
  ASSERT_TRUE(save_model_folder((*model)->config(), (*model)->parameters(), folder).ok());
  write_tokenizer(folder);
}

// A classifier of random weights over the toy vocabulary.
void write_toy_classifier(const fs::path& folder,
                          ModelTask task = ModelTask::kSequenceClassification) {
  ASSERT_TRUE(
      make_toy_model(folder, {.layers = 1, .hidden_size = 32, .intermediate_size = 32}).ok());
  const auto model =
      Transformer::load(with_task(*ModelConfig::load(folder), task), folder, /*head_seed=*/5);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  ASSERT_TRUE(save_model_folder((*model)->config(), (*model)->parameters(), folder).ok());
  write_tokenizer(folder);
}

ScoreRequest request(const json& prompt, const std::string& response) {
  return {.data_source = "x",
          .response = response,
          .ground_truth = "",
          .extra_info = "",
          .where = "t:1",
          .prompt = prompt.dump()};
}

TEST(RewardModel, GivesTransformersNumberWhateverTheBatch) {
  for (const char* name : {"llama_sequence", "qwen2_sequence", "gpt2_token"}) {
    SCOPED_TRACE(name);
    const json reference = testing::read_json(
        fs::path(STARLING_SOURCE_DIR "/tests/fixtures/heads") / (std::string(name) + ".json"));
    ASSERT_TRUE(reference.is_object());
    support::TemporaryFolder folder;
    ASSERT_NO_FATAL_FAILURE(write_classifier(reference, folder.path()));
    const auto scorer = RewardModelScorer::create(folder.path(), {.threads = 1}, true);
    ASSERT_TRUE(scorer.ok()) << scorer.status().to_string();
    const Ids ids = reference["input_ids"];
    const auto alone = (*scorer)->score_ids({ids});
    ASSERT_TRUE(alone.ok()) << alone.status().to_string();
    EXPECT_NEAR(alone->front(), flatten(reference["outputs"]).back(), 1e-4);

    std::vector<Ids> many{{3, 1, 4}, ids, {1, 5}};
    for (int i = 0; i < 400; ++i) many.push_back(ids);  // more than one pass
    const auto together = (*scorer)->score_ids(many);
    ASSERT_TRUE(together.ok());
    EXPECT_EQ((*together)[1], alone->front());
    EXPECT_EQ(together->back(), alone->front());
    EXPECT_NE((*together)[0], alone->front());
  }
}

TEST(RewardModel, WritesChatsByItsOwnTemplate) {
  support::TemporaryFolder folder;
  write_tokenizer(folder.path());
  const json chat = {{{"role", "user"}, {"content", "ab"}}};
  const auto without = RewardModelText::load(folder.path());
  ASSERT_TRUE(without.ok()) << without.status().to_string();
  EXPECT_NE(without->ids(request(chat, "c"))
                .status()
                .message()
                .find("no chat template: put a chat_template.jinja"),
            std::string::npos);

  std::ofstream(folder.path() / "chat_template.jinja")
      << "{% for m in messages %}{{ m.content }}{{ ' ' if m.role == 'user' else eos_token }}{% "
         "endfor %}{% if add_generation_prompt %}z{% endif %}";
  const auto text = RewardModelText::load(folder.path());
  const Tokenizer tokenizer = *Tokenizer::load(folder.path());
  const auto written = text->ids(request(chat, "c"));
  ASSERT_TRUE(written.ok()) << written.status().to_string();
  Ids expected = *tokenizer.encode("ab c", false);
  expected.push_back(kToyEndId);
  EXPECT_EQ(*written, expected);

  // Plain text has no use for it.
  expected = *tokenizer.encode("abc", false);
  expected.push_back(kToyEndId);
  EXPECT_EQ(*text->ids(request("ab", "c")), expected);
  EXPECT_FALSE(text->ids(request(7, "c")).ok());
}

TEST(RewardModel, ReadsABeginningOnceWhetherTheTemplateWritesItOrTheTokenizer) {
  const json chat = {{{"role", "user"}, {"content", "ab"}}};
  for (const bool tokenizer_adds : {false, true}) {
    support::TemporaryFolder folder;
    auto tokenizer = json::parse(toy_tokenizer_json());
    const std::string begin = tokenizer["added_tokens"][0]["content"];
    if (tokenizer_adds) {
      tokenizer["post_processor"] = {
          {"type", "TemplateProcessing"},
          {"single",
           {{{"SpecialToken", {{"id", begin}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
          {"pair", json::array()},
          {"special_tokens", {{begin, {{"id", begin}, {"ids", {0}}, {"tokens", {begin}}}}}}};
    }
    std::ofstream(folder.path() / "tokenizer.json") << tokenizer.dump();
    auto config = json::parse(toy_tokenizer_config_json());
    config["bos_token"] = begin;
    std::ofstream(folder.path() / "tokenizer_config.json") << config.dump();
    std::ofstream(folder.path() / "chat_template.jinja")
        << "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}";
    const auto text = RewardModelText::load(folder.path());
    ASSERT_TRUE(text.ok()) << text.status().to_string();
    const auto ids = text->ids(request(chat, "c"));
    ASSERT_TRUE(ids.ok()) << ids.status().to_string();
    EXPECT_EQ(ids->size(), 4u) << tokenizer_adds;
    EXPECT_EQ(ids->front(), 0);
  }
}

TEST(RewardModel, WhatItCannotReadHasNoScore) {
  support::TemporaryFolder folder;
  ASSERT_NO_FATAL_FAILURE(write_toy_classifier(folder.path(), ModelTask::kTokenClassification));
  const auto scorer = RewardModelScorer::create(folder.path(), {.threads = 1}, true);
  ASSERT_TRUE(scorer.ok()) << scorer.status().to_string();
  const std::vector<ScoreRequest> requests{request("ab", std::string(100, 'a')), request("ab", "c"),
                                           request(json::array({{{"role", "user"}}}), "c")};
  const auto batch = (*scorer)->score(requests);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_NE(batch->scores[0].message.find(
                "the conversation has 103 tokens, and the reward model reads from 1 to 64"),
            std::string::npos)
      << batch->scores[0].message;
  EXPECT_TRUE(batch->scores[1].ok());
  EXPECT_FALSE(batch->scores[2].ok());
  EXPECT_EQ(batch->counts.errors, 2);
  EXPECT_EQ((*scorer)->score(std::vector<ScoreRequest>{requests[1]})->scores[0].value,
            batch->scores[1].value);
}

// Says the response's length.
class LengthScorer : public Scorer {
 public:
  Result<ScoredBatch> score(std::span<const ScoreRequest> requests) override {
    EXPECT_FALSE(requests.empty()) << "who scores alone is asked about something";
    ScoredBatch batch;
    for (const ScoreRequest& request : requests) {
      Score& score = batch.scores.emplace_back();
      score.value = static_cast<double>(request.response.size());
    }
    return batch;
  }
};

Result<RewardReport> report_of(std::unique_ptr<Scorer> model, int requests) {
  std::vector<WeightedScorer> parts;
  parts.push_back({.name = "length", .weight = 0.3, .scorer = std::make_unique<LengthScorer>()});
  parts.push_back({.name = "model", .weight = 0.7, .scorer = std::move(model)});
  RewardFunction reward(std::move(parts), LengthPenalty(), /*failure_is_error=*/true);
  std::vector<ScoreRequest> rows;
  for (int i = 0; i < requests; ++i)
    rows.push_back(request("ab", std::string(static_cast<std::size_t>(i) % 50, 'c')));
  return reward.score(rows, std::vector<std::int64_t>(rows.size(), 1));
}

// Workers cut passes by what they have: one has nothing to score, one more than a pass.
TEST(RewardModel, WorkersThatKeepItOnceScoreTogether) {
  support::TemporaryFolder folder;
  ASSERT_NO_FATAL_FAILURE(write_toy_classifier(folder.path()));
  const std::array<int, 3> requests = {0, 3, 400};
  std::vector<RewardReport> expected;
  for (const int count : requests) {
    auto whole = RewardModelScorer::create(folder.path(), {.threads = 1}, true);
    ASSERT_TRUE(whole.ok()) << whole.status().to_string();
    EXPECT_FALSE((*whole)->scores_together());
    const auto report = report_of(std::move(*whole), count);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    expected.push_back(*report);
  }
  auto links = make_thread_links(static_cast<int>(requests.size()));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < requests.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Communicator ranks(std::move(links[rank]));
      auto once = RewardModelScorer::create(folder.path(), {.threads = 1}, true,
                                            /*offload=*/false, {.all = &ranks});
      ASSERT_TRUE(once.ok()) << once.status().to_string();
      EXPECT_TRUE((*once)->scores_together());
      const auto report = report_of(std::move(*once), requests[rank]);
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_EQ(report->scores, expected[rank].scores);
      EXPECT_EQ(report->sums, expected[rank].sums);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RewardModel, AModelWithoutAHeadIsNone) {
  support::TemporaryFolder folder;
  ASSERT_TRUE(
      make_toy_model(folder.path(), {.layers = 1, .hidden_size = 32, .intermediate_size = 32})
          .ok());
  const auto scorer = RewardModelScorer::create(folder.path(), {.threads = 1}, /*start=*/false);
  ASSERT_FALSE(scorer.ok());
  EXPECT_NE(scorer.status().message().find("this is not a reward model"), std::string::npos);

  ASSERT_NO_FATAL_FAILURE(write_toy_classifier(folder.path()));
  const auto unstarted = RewardModelScorer::create(folder.path(), {.threads = 1}, /*start=*/false);
  ASSERT_TRUE(unstarted.ok()) << unstarted.status().to_string();
  EXPECT_TRUE((*unstarted)->check_row(request("ab", "")).ok());
  EXPECT_NE((*unstarted)
                ->check_row(request(json::array({{{"role", "user"}, {"content", "a"}}}), ""))
                .message()
                .find("chat_template.jinja"),
            std::string::npos);
}

}  // namespace
}  // namespace rl
