#include "rl/rollout/completion_text.h"

#include <gtest/gtest.h>

#include "random_requests.h"

namespace rl {
namespace {

// Tokens of a text, one per byte or as the tokenizer cuts it.
std::vector<std::int32_t> ids_of(const std::string& text) {
  return *testing::byte_tokenizer().encode(text, false);
}

struct Outcome {
  std::string text;
  std::string streamed;
  std::string stop;
  std::size_t tokens = 0;  // pushed until it stopped
};

Outcome feed(const std::vector<std::int32_t>& ids, const std::vector<std::string>& stops,
             bool keep = false, std::size_t least = 0) {
  CompletionText text(testing::byte_tokenizer(), true, stops, keep);
  Outcome outcome;
  for (const std::int32_t id : ids) {
    ++outcome.tokens;
    const bool stopped = text.push(id, outcome.tokens >= least);
    const bool ended = stopped || outcome.tokens == ids.size();
    if (ended) text.finish(true);
    outcome.streamed += text.take_new();
    EXPECT_TRUE(text.text().starts_with(outcome.streamed));
    if (stopped) break;
  }
  outcome.text = text.text();
  outcome.stop = text.stop_string();
  EXPECT_EQ(outcome.streamed, outcome.text);
  return outcome;
}

TEST(CompletionText, StopsWhereverTokensBegin) {
  const std::vector<std::int32_t> ids = ids_of("one two three four");
  for (const std::string stop : {"two", "o t", "wo thr", "e", "three four", " "}) {
    const std::string whole = "one two three four";
    const Outcome cut = feed(ids, {stop});
    EXPECT_EQ(cut.text, whole.substr(0, whole.find(stop))) << stop;
    EXPECT_EQ(cut.stop, stop);
    EXPECT_EQ(feed(ids, {stop}, /*keep=*/true).text,
              whole.substr(0, whole.find(stop) + stop.size()));
  }
  EXPECT_EQ(feed(ids, {"five", "twos"}).text, "one two three four");
  EXPECT_EQ(feed(ids, {"five"}).stop, "");
}

TEST(CompletionText, TakesTheEarliestOfSeveral) {
  EXPECT_EQ(feed(ids_of("abcdef"), {"ef", "cd", "cde"}).stop, "cd");
  EXPECT_EQ(feed(ids_of("aab"), {"ab"}).text, "a");
}

// Special tokens are looked for though they are not shown; nothing is found across one.
TEST(CompletionText, SpecialTokensAreSearchedAndNotShown) {
  const std::string text = "aa<|im_start|>aab<|im_end|>c";
  const std::vector<std::int32_t> ids = ids_of(text);
  const Outcome at_end = feed(ids, {"<|im_end|>"});
  EXPECT_EQ(at_end.text, "aaaab");
  EXPECT_EQ(at_end.stop, "<|im_end|>");
  EXPECT_EQ(ids[at_end.tokens - 1], ids_of("<|im_end|>")[0]);
  EXPECT_EQ(feed(ids, {"<|im_end|>"}, /*keep=*/true).text, "aaaab<|im_end|>");
  EXPECT_EQ(feed(ids, {"b<|im_end|>c"}).text, "aaaa");
  EXPECT_EQ(feed(ids, {"im_st"}).text, "aa");
  EXPECT_EQ(feed(ids, {"aaa"}).text, "aaaabc");  // a token stands between
  EXPECT_EQ(feed(ids, {"ab"}).text, "aaa");
  CompletionText shown(testing::byte_tokenizer(), false, {"<|im_end|>"}, false);
  for (const std::int32_t id : ids) shown.push(id, true);
  EXPECT_EQ(shown.text(), "aa<|im_start|>aab");
}

TEST(CompletionText, DoesNotCountBeforeTheMinimum) {
  const std::vector<std::int32_t> ids = ids_of("x, x, x, x");
  const Outcome late = feed(ids, {"x"}, false, 4);
  EXPECT_GE(late.tokens, 4U);
  EXPECT_GT(late.text.size(), 3U);
}

TEST(CompletionText, HoldsBackWhatMayBecomeAStop) {
  CompletionText text(testing::byte_tokenizer(), true, {"END."}, false);
  std::string shown;
  for (const std::int32_t id : ids_of("so EN")) text.push(id, true), shown += text.take_new();
  EXPECT_EQ(shown, "so ");
  for (const std::int32_t id : ids_of("T")) text.push(id, true), shown += text.take_new();
  EXPECT_EQ(shown, "so ENT");
}

TEST(CompletionText, WaitsForWholeCharacters) {
  const std::string text = "a \xC3\xA9\xE2\x82\xAC \xF0\x9F\x98\x80 z";
  EXPECT_EQ(feed(ids_of(text), {}).text, text);
  EXPECT_EQ(feed(ids_of(text), {"\xE2\x82\xAC"}).text, "a \xC3\xA9");
  std::vector<std::int32_t> broken = ids_of("\xF0\x9F\x98\x80");
  if (broken.size() > 1) {
    broken.pop_back();
    EXPECT_EQ(feed(broken, {"?"}).text, "\xEF\xBF\xBD");
  }
}

}  // namespace
}  // namespace rl
