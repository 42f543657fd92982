// Rows in order and what is refused of them, by a builder that a test can see through.
#include "rl/feed/encoded_rows.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <span>
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
using support::expect_failure;

// Two parts: the row's prompt, a token a letter, and one token that says so.
struct LetterTokens {
  std::vector<std::int32_t> letters;
  std::vector<std::int32_t> end = {0};

  std::vector<std::span<const std::int32_t>> parts() const { return {letters, end}; }
  std::int64_t longest() const { return std::ssize(letters) + 1; }
};

class LetterBuilder {
 public:
  static Result<LetterBuilder> create(const Tokenizer&, const std::string& how) {
    if (how == "wrong") return runtime::invalid_argument("no such letters");
    return LetterBuilder();
  }
  Result<LetterTokens> tokenize(const DataRow& row) const {
    LetterTokens tokens;
    for (const char letter : row.prompt.get<std::string>()) {
      if (letter == '!') return runtime::invalid_argument(row.where + ": a row of no letters");
      tokens.letters.push_back(letter - 'a');
    }
    return tokens;
  }
};

using LetterRows = EncodedRows<LetterBuilder, LetterTokens>;

class EncodedRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made =
        make_toy_model(folder_.path(), {.layers = 1, .hidden_size = 16, .intermediate_size = 16});
    ASSERT_TRUE(made.ok()) << made.to_string();
  }
  Result<std::unique_ptr<LetterRows>> rows(const std::vector<std::string>& prompts,
                                           EncodedRowsOptions options = {},
                                           const std::string& how = "") const {
    std::ofstream file(folder_.path() / "rows.jsonl");
    for (const std::string& prompt : prompts)
      file << R"({"prompt": ")" + prompt + R"(", "answer": "x"})" + "\n";
    file.close();
    DatasetOptions dataset;
    dataset.files = {folder_.file("rows.jsonl")};
    options.model = folder_.path();
    options.shuffle = false;
    return LetterRows::create(dataset, options, how);
  }
  static std::vector<std::int64_t> lengths(const std::vector<LetterTokens>& batch) {
    std::vector<std::int64_t> all;
    for (const LetterTokens& tokens : batch) all.push_back(std::ssize(tokens.letters));
    return all;
  }

  using Lengths = std::vector<std::int64_t>;
  support::TemporaryFolder folder_;
};

TEST_F(EncodedRowsTest, BatchesComeInOrderEpochAfterEpoch) {
  const auto made = rows({"a", "ab", "abc", "abcd", "abcde"}, {.batch_rows = 2});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ((*made)->rows().rows(), 5);
  for (const Lengths& expected : {Lengths{1, 2}, Lengths{3, 4}, Lengths{1, 2}}) {
    const auto batch = (*made)->next();
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    EXPECT_EQ(lengths(*batch), expected);
  }
}

TEST_F(EncodedRowsTest, RowsAreReadByNumberAndAllInStepsOfSomeSize) {
  const auto made = rows({"a", "ab", "abc", "abcd", "abcde"});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const std::vector<std::int64_t> some = {4, 0, 4};
  const auto read = (*made)->read(some);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(lengths(*read), (Lengths{5, 1, 5}));
  const auto all =
      (*made)->all(2, [](const std::vector<LetterTokens>& step) { return lengths(step); });
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_EQ(*all, (std::vector<Lengths>{{1, 2}, {3, 4}, {5}})) << "the last one has fewer";
}

TEST_F(EncodedRowsTest, TheSizesOfPartsAreKnownFromTheBeginning) {
  const auto made = rows({"abc", "a"});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ((*made)->part_sizes(), (std::vector<Lengths>{{3, 1}, {1, 1}}));
}

TEST_F(EncodedRowsTest, AWrongRowIsFoundBeforeTheFirstStep) {
  expect_failure(rows({"a", "a!"}).status(), ErrorCode::kInvalidArgument,
                 {"rows.jsonl:2: a row of no letters"});
  expect_failure(rows({"a"}, {}, "wrong").status(), ErrorCode::kInvalidArgument,
                 {"no such letters"});
  expect_failure(rows({"a"}, {.batch_rows = 2}).status(), ErrorCode::kInvalidArgument,
                 {"data.train_batch_size"});
}

TEST_F(EncodedRowsTest, RowsFitTheModelsContextAndVocabulary) {
  EXPECT_TRUE(rows({"abc"}, {.context = 4, .vocabulary = 3}).ok());
  expect_failure(rows({"a", "abcd"}, {.context = 4}).status(), ErrorCode::kInvalidArgument,
                 {"rows.jsonl:2", "has 5 tokens", "context is 4", "data.max_length"});
  expect_failure(rows({"a", "abc"}, {.vocabulary = 2}).status(), ErrorCode::kInvalidArgument,
                 {"rows.jsonl:2", "token 2", "vocabulary of 2"});
}

}  // namespace
}  // namespace rl
