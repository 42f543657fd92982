#include "rl/feed/vocabulary_check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/rl/data/test_files.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

class VocabularyCheckTest : public ::testing::Test {
 protected:
  runtime::Status check(const std::vector<std::int32_t>& ids, std::int64_t vocabulary) const {
    return check_vocabulary(ids, vocabulary, tokenizer_, "f:3");
  }

  const Tokenizer tokenizer_ = testing::toy_tokenizer();
};

TEST_F(VocabularyCheckTest, IdsAreThoseOfTheModelsEmbeddings) {
  EXPECT_TRUE(check({}, 6).ok());
  EXPECT_TRUE(check({0, 5}, 6).ok());
  for (const std::int32_t outside : {6, -1, INT32_MAX, INT32_MIN})
    support::expect_failure(check({0, outside}, 6), runtime::ErrorCode::kInvalidArgument,
                            {"f:3: token " + std::to_string(outside) + " ('", "vocabulary of 6"});
  // People know it by its text.
  support::expect_failure(check({*tokenizer_.token_to_id("b")}, 1),
                          runtime::ErrorCode::kInvalidArgument, {"('b')", "put there the one"});
}

TEST_F(VocabularyCheckTest, OfAnUnknownModelNothingIsChecked) {
  EXPECT_TRUE(check({INT32_MAX}, 0).ok());
  EXPECT_FALSE(check({1}, 1).ok()) << "one entry is a vocabulary";
}

}  // namespace
}  // namespace rl
