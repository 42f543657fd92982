// The parts that have their own rules: UTF-8, byte characters, tries, merges, patterns.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/merges.h"
#include "rl/tokenizer/pattern.h"
#include "rl/tokenizer/regex.h"
#include "rl/tokenizer/trie.h"
#include "rl/tokenizer/unicode_text.h"
#include "rl/tokenizer/vocabulary.h"

namespace rl {
namespace {

TEST(TokenizerText, FindsTheFirstByteThatIsNotUtf8) {
  EXPECT_EQ(invalid_utf8_at(""), std::nullopt);
  EXPECT_EQ(invalid_utf8_at("plain ascii of more than eight bytes"), std::nullopt);
  EXPECT_EQ(invalid_utf8_at("\u00e9\u4f60\U0001f600\U0010ffff"), std::nullopt);
  EXPECT_EQ(invalid_utf8_at("12345678\xff"), 8u);
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe4\xbd",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9f\x98"}) {
    EXPECT_EQ(invalid_utf8_at(bad), 0u) << bad;
  }
}

TEST(TokenizerText, ReplacesMaximalPartsAsUnicodeRecommends) {
  EXPECT_EQ(replace_invalid_utf8("a\xf1\x80\x80\xe1\x80\xc2"
                                 "b\x80"
                                 "c\x80\xbf"
                                 "d"),
            "a\ufffd\ufffd\ufffd"
            "b\ufffd"
            "c\ufffd\ufffd"
            "d");
  EXPECT_EQ(replace_invalid_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xf0\x9f\x98"), "\ufffd");
}

TEST(TokenizerText, CompleteLengthKeepsWhatCanNoLongerComplete) {
  EXPECT_EQ(complete_utf8_length("ab"), 2u);
  EXPECT_EQ(complete_utf8_length("ab\xf0\x9f\x98"), 2u);
  EXPECT_EQ(complete_utf8_length("ab\xf0\x9f\x98\x80"), 6u);
  EXPECT_EQ(complete_utf8_length("\xe4"), 0u);
  EXPECT_EQ(complete_utf8_length("\xed\xa0"), 2u);  // never valid: no reason to wait
  EXPECT_EQ(complete_utf8_length("\x80\x80\x80\x80"), 4u);
}

TEST(TokenizerBytes, EveryByteHasACharacterOfItsOwn) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    EXPECT_EQ(character_to_byte(byte_to_character(value)), value);
    EXPECT_EQ(parse_byte_token(byte_token(value)), value);
  }
  EXPECT_EQ(byte_to_character(' '), U'\u0120');
  EXPECT_EQ(byte_to_character('\n'), U'\u010a');
  EXPECT_EQ(byte_to_character(0xad), U'\u0143');
  EXPECT_EQ(character_to_byte(U'\u4f60'), std::nullopt);
  EXPECT_EQ(parse_byte_token("<0xZZ>"), std::nullopt);
  EXPECT_EQ(parse_byte_token("<0x1>"), std::nullopt);
}

TEST(ByteTrie, FindsAllKeysThatBeginAText) {
  const ByteTrie trie({{"a", 0}, {"abc", 1}, {"ab", 2}, {"b", 3}, {"", 9}, {"\xff", 4}});
  std::vector<std::pair<std::size_t, std::int32_t>> found;
  trie.prefixes("abcd",
                [&](std::size_t length, std::int32_t value) { found.emplace_back(length, value); });
  EXPECT_EQ(found, (std::vector<std::pair<std::size_t, std::int32_t>>{{1, 0}, {2, 2}, {3, 1}}));
  EXPECT_TRUE(trie.starts('\xff'));
  EXPECT_FALSE(trie.starts('c'));
  EXPECT_TRUE(ByteTrie().empty());
}

TEST(ByteTrie, ManyChildrenUnderOneNode) {
  std::vector<std::string> keys;
  for (int byte = 0; byte < 256; ++byte) keys.push_back(std::string("x") + static_cast<char>(byte));
  std::vector<std::pair<std::string_view, std::int32_t>> entries;
  for (int byte = 0; byte < 256; ++byte)
    entries.emplace_back(keys[static_cast<std::size_t>(byte)], byte);
  const ByteTrie trie(std::move(entries));
  for (int byte = 0; byte < 256; ++byte) {
    int found = -1;
    trie.prefixes(keys[static_cast<std::size_t>(byte)],
                  [&](std::size_t, std::int32_t value) { found = value; });
    EXPECT_EQ(found, byte);
  }
}

// Whatever merges there are: the heap and the scan give what merging by hand, one lowest leftmost
// pair at a time, gives.
TEST(Merges, EveryLengthGivesTheLowestRankLeftmostFirst) {
  std::mt19937 rng(11);
  for (int round = 0; round < 200; ++round) {
    MergeTable table(400);
    for (std::uint32_t rank = 0; rank < 100; ++rank) {
      table.insert(static_cast<std::int32_t>(rng() % 12), static_cast<std::int32_t>(rng() % 12),
                   {rank, static_cast<std::int32_t>(rng() % 12)});
    }
    std::vector<std::int32_t> symbols(1 + rng() % 150);
    for (auto& symbol : symbols) symbol = static_cast<std::int32_t>(rng() % 12);
    std::vector<std::int32_t> expected = symbols;
    for (;;) {
      const Merge* best = nullptr;
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
        const Merge* merge = table.find(expected[i], expected[i + 1]);
        if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
          best = merge;
          at = i;
        }
      }
      if (best == nullptr) break;
      expected[at] = best->id;
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    MergeScratch scratch;
    apply_merges(table, symbols, scratch);
    ASSERT_EQ(symbols, expected);
  }
}

TEST(Vocabulary, GapsAndLimits) {
  using Entry = std::pair<std::string_view, std::int64_t>;
  auto vocabulary = Vocabulary::make(std::vector<Entry>{{"a", 5}, {"b", 0}});
  ASSERT_TRUE(vocabulary.ok());
  EXPECT_EQ(vocabulary->size(), 6);
  EXPECT_EQ(vocabulary->find("a"), 5);
  EXPECT_EQ(vocabulary->find("c"), std::nullopt);
  EXPECT_EQ(vocabulary->token(5), "a");
  EXPECT_EQ(vocabulary->token(3), "");
  EXPECT_FALSE(Vocabulary::make(std::vector<Entry>{{"a", std::int64_t{1} << 60}}).ok());
  EXPECT_FALSE(Vocabulary::make(std::vector<Entry>{{"a", -1}}).ok());
  EXPECT_EQ(Vocabulary().find("a"), std::nullopt);
}

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  auto compiled = Pattern::regex(pattern);
  EXPECT_TRUE(compiled.ok()) << compiled.status().to_string();
  std::vector<std::string> found;
  if (!compiled.ok()) return found;
  RegexScratch scratch;
  EXPECT_TRUE(compiled
                  ->each(text, scratch,
                         [&](std::size_t begin, std::size_t end) {
                           found.emplace_back(text.substr(begin, end - begin));
                         })
                  .ok());
  return found;
}

TEST(Regex, MeansWhatOnigurumaMeans) {
  EXPECT_EQ(matches(R"(\s)", "a\u180eb\u2003c\u0085"),
            (std::vector<std::string>{"\u2003", "\u0085"}));  // U+180E is no white space
  EXPECT_EQ(matches(R"([^\s]+)", "a\u180eb c"), (std::vector<std::string>{"a\u180eb", "c"}));
  EXPECT_EQ(matches(R"(\h+)", "xyz0fG"), (std::vector<std::string>{"0f"}));  // hexadecimal digits
  EXPECT_EQ(matches(R"((?i:'s))", "'s'S'\u017f"),
            (std::vector<std::string>{"'s", "'S", "'\u017f"}));
  EXPECT_EQ(matches(R"(^b)", "a\nb"), (std::vector<std::string>{"b"}));  // ^ is at every line
  EXPECT_EQ(matches(R"([\[\]]+)", "a[]"), (std::vector<std::string>{"[]"}));
  EXPECT_EQ(matches(R"([]a]+)", "]a"), (std::vector<std::string>{"]a"}));
  EXPECT_EQ(matches("x*", "axb").size(), 3u);  // none right behind a match
}

TEST(Regex, GivesUpRatherThanHang) {
  auto pattern = Pattern::regex("(a+)+$");
  ASSERT_TRUE(pattern.ok());
  RegexScratch scratch;
  auto status = pattern->each(std::string(64, 'a') + "b", scratch, [](std::size_t, std::size_t) {});
  EXPECT_EQ(status.code(), runtime::ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace rl
