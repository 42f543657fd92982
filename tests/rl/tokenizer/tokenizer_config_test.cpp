// The changes by files next to a tokenizer.json, compared with transformers
// (make_tokenizer_config_cases.py records it), and what transformers has no word for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/tokenizer/clean_up.h"
#include "rl/tokenizer/tokenizer.h"
#include "tests/rl/tokenizer/tokenizer_fixtures.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;
namespace fs = std::filesystem;

class NextToTokenizerJson : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "starling_beside_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  void take_base(const std::string& base) {
    fs::copy_file(
        fs::path(STARLING_SOURCE_DIR "/tests/fixtures/tokenizers") / base / "tokenizer.json",
        folder_ / "tokenizer.json", fs::copy_options::overwrite_existing);
  }
  runtime::Result<Tokenizer> load_case(const ordered_json& item) {
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove(entry.path());
    take_base(item.at("base").get<std::string>());
    for (const auto& [name, content] : item.at("files").items()) write(name, content.dump());
    return Tokenizer::load(folder_);
  }
  runtime::Status refusal(const std::string& config) {
    take_base("smollm_digits");
    write("tokenizer_config.json", config);
    return Tokenizer::load(folder_).status();
  }

  fs::path folder_;
};

std::string streamed(const Tokenizer& tokenizer, const Ids& ids, bool skip_special_tokens) {
  TokenStream stream(tokenizer, skip_special_tokens);
  std::string text;
  for (std::int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

void expect_texts(const Tokenizer& tokenizer, const ordered_json& item, const std::string& what) {
  for (const ordered_json& one : item.at("texts")) {
    const std::string text = one.at("text");
    const Ids ids = one.at("ids");
    EXPECT_EQ(tokenizer.encode(text, true).value_or({}), ids) << what << "\n" << text;
    EXPECT_EQ(tokenizer.decode(ids, false), one.at("decoded").get<std::string>()) << what;
    EXPECT_EQ(tokenizer.decode(ids, true), one.at("plain").get<std::string>()) << what;
    EXPECT_EQ(streamed(tokenizer, ids, false), one.at("decoded").get<std::string>()) << what;
  }
}

TEST_F(NextToTokenizerJson, EqualsTransformers) {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/tokenizer/tokenizer_config_cases.json");
  const ordered_json cases = ordered_json::parse(file);
  for (const ordered_json& item : cases) {
    const std::string what = item.at("base").get<std::string>() + " " + item.at("files").dump();
    const auto tokenizer = load_case(item);
    ASSERT_TRUE(tokenizer.ok()) << what << tokenizer.status().to_string();
    expect_texts(*tokenizer, item, what);
    const auto& texts = tokenizer->special_token_texts();
    EXPECT_EQ(texts.size(), item.at("special").size()) << what;
    for (const auto& [name, expected] : item.at("special").items()) {
      ASSERT_TRUE(texts.contains(name)) << what << name;
      EXPECT_EQ(texts.at(name), expected.at(0).get<std::string>()) << what << name;
      const auto id = tokenizer->token_to_id(texts.at(name));
      EXPECT_EQ(id ? ordered_json(*id) : ordered_json(), expected.at(1)) << what << name;
    }
  }
  EXPECT_GT(cases.size(), 40u);
}

TEST_F(NextToTokenizerJson, DamageNamesTheFileAndTheEntry) {
  const auto expect = [&](const std::string& config, std::string_view mentions) {
    const runtime::Status status = refusal(config);
    EXPECT_EQ(status.code(), runtime::ErrorCode::kInvalidArgument) << config;
    EXPECT_NE(status.message().find(mentions), std::string::npos) << status.message();
  };
  expect(R"({"added_tokens_decoder": {"x": {"content": "a"}}})", "\"x\" is not a token id");
  expect(R"({"added_tokens_decoder": {"7": {"special": true}}})", "added_tokens_decoder: 7: ");
  expect(R"({"added_tokens_decoder": []})", "added_tokens_decoder: should be an object");
  expect(R"({"split_special_tokens": "yes"})", "split_special_tokens is neither true nor false");
  expect(R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": 1})", "add_prefix_space");
  expect(R"({"eos_token": 5})", "eos_token");
  write("added_tokens.json", R"({"<x>": "a"})");
  expect("{}", "added_tokens.json: the id of \"<x>\" is not a number from 0");
}

TEST_F(NextToTokenizerJson, ModelsThatNameLlamaByMistakeKeepTheirOwnSpaces) {
  take_base("llama2_bytefallback");
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})");
  write("config.json", R"({"model_type": "phi3"})");
  const Ids own = *Tokenizer::load(folder_)->encode("a</s> y", true);
  write("config.json", R"({"model_type": "llama"})");
  const Ids llama = *Tokenizer::load(folder_)->encode("a</s> y", true);
  const std::string json = testing::file_text(folder_ / "tokenizer.json");
  EXPECT_EQ(own, *Tokenizer::from_json(json, "tokenizer.json")->encode("a</s> y", true));
  EXPECT_NE(own, llama);
}

TEST(CleanUpSpaces, InPartsIsTheSameAsInOne) {
  const std::string text = "hello , do n't ' x ' we 've 12 . it 's  .  end ' s ? ! 're";
  const std::string whole = clean_up_spaces(text);
  EXPECT_EQ(whole, "hello, don't'x'we've 12. it's .  end's?!'re");
  std::string parts, held;
  for (char c : text) {
    held += c;
    const std::size_t length = cleanable_length(held);
    parts += clean_up_spaces(held.substr(0, length));
    held.erase(0, length);
    EXPECT_LT(held.size(), 16u) << held;
  }
  EXPECT_EQ(parts + clean_up_spaces(held), whole);
}

}  // namespace
}  // namespace rl
