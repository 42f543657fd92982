// Ids and text against the reference implementation's, on every tokenizer that the fixtures hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/tokenizer/tokenizer.h"
#include "tests/rl/cached_smollm2.h"
#include "tests/rl/fixture_counts.h"
#include "tokenizer_fixtures.h"

namespace rl {
namespace {

using Ids = std::vector<std::int32_t>;

int compare_with_reference(const Tokenizer& tokenizer, const std::filesystem::path& reference) {
  int compared = 0;
  for (const auto& entry : nlohmann::json::parse(testing::file_text(reference))) {
    const auto text = entry["text"].get<std::string>();
    const auto expected = entry["ids"].get<Ids>();
    auto ids = tokenizer.encode(text, /*add_special_tokens=*/true);
    EXPECT_TRUE(ids.ok()) << ids.status().to_string();
    if (!ids.ok()) return compared;
    EXPECT_EQ(*ids, expected) << reference << ": " << entry["text"];
    EXPECT_EQ(tokenizer.decode(expected, /*skip_special_tokens=*/true),
              entry["decoded"].get<std::string>())
        << reference << ": " << entry["text"];
    TokenStream stream(tokenizer, /*skip_special_tokens=*/true);
    std::string streamed;
    for (std::int32_t id : expected) streamed += stream.push(id);
    streamed += stream.finish();
    EXPECT_EQ(streamed, entry["decoded"].get<std::string>()) << reference << ": " << entry["text"];
    ++compared;
  }
  return compared;
}

TEST(TokenizerReference, EveryFixtureIsExact) {
  int tokenizers = 0;
  int texts = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::tokenizer_fixtures() / "tokenizers")) {
    auto tokenizer = Tokenizer::load(entry.path());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
    texts += compare_with_reference(*tokenizer, entry.path() / "reference.json");
    ++tokenizers;
  }
  testing::count_fixtures("tokenizers",
                          std::to_string(tokenizers) + " with " + std::to_string(texts) + " texts");
  EXPECT_GT(texts, 0);
}

TEST(TokenizerReference, SmolLm2FromGgufIsExact) {
  const auto path = testing::cached_smollm2();
  if (path.empty()) GTEST_SKIP() << "the SmolLM2 GGUF is not in the cache";
  auto tokenizer = Tokenizer::load(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_EQ(tokenizer->special_token_texts().at("bos_token"), "<|im_start|>");
  EXPECT_EQ(tokenizer->id_to_token(*tokenizer->eos_id()), "<|im_end|>");
  EXPECT_NE(tokenizer->chat_template_source().find("<|im_start|>"), std::string::npos);
  const auto folder = testing::tokenizer_fixtures() / "smollm2";
  EXPECT_GT(compare_with_reference(*tokenizer, folder / "tokenizer_reference.json"), 0);

  int prompts = 0;
  for (const auto& entry : nlohmann::json::parse(testing::file_text(folder / "reference.json"))) {
    const auto expected = entry["prompt_ids"].get<Ids>();
    auto ids = tokenizer->encode(tokenizer->decode(expected, false), false);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, expected);
    EXPECT_EQ(tokenizer->decode(entry["greedy_ids"].get<Ids>(), true),
              entry["greedy_text"].get<std::string>());
    ++prompts;
  }
  EXPECT_GT(prompts, 0);
}

// Older layouts (vocab.json and merges.txt, SentencePiece models) as transformers and sentencepiece
// read them; see make.py there.
TEST(TokenizerReference, OlderLayoutsAreExact) {
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           STARLING_SOURCE_DIR "/tests/fixtures/tokenizer_layouts")) {
    if (!entry.is_directory()) continue;
    auto tokenizer = Tokenizer::load(entry.path());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
    EXPECT_GT(compare_with_reference(*tokenizer, entry.path() / "reference.json"), 30)
        << entry.path();
    ++folders;
  }
  EXPECT_GE(folders, 11);
}

// Whatever the pieces, words or caches in between: one long text gives the ids that its reference
// gives, from many threads.
TEST(TokenizerReference, ThreadsShareOneTokenizer) {
  const auto folder = testing::tokenizer_fixtures() / "tokenizers" / "llama3_split";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no llama3_split among the fixtures";
  auto tokenizer = Tokenizer::load(folder);
  ASSERT_TRUE(tokenizer.ok());
  const auto reference = nlohmann::json::parse(testing::file_text(folder / "reference.json"));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        for (const auto& entry : reference) {
          auto ids = tokenizer->encode(entry["text"].get<std::string>(), true);
          if (!ids.ok() || *ids != entry["ids"].get<Ids>()) ++wrong[static_cast<std::size_t>(t)];
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace rl
