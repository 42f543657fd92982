// Every character as Hugging Face's tokenizers take it (make_unicode_cases.py records it).
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "rl/tokenizer/normalizer.h"
#include "rl/tokenizer/pre_tokenizer.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {
namespace {

using nlohmann::json;

json unicode_cases() {
  std::ifstream file(STARLING_SOURCE_DIR "/tests/rl/tokenizer/unicode_cases.json");
  return json::parse(file);
}

std::string character(char32_t c) {
  std::string text;
  append_utf8(c, text);
  return text;
}

template <class Visit>
void each_character(Visit visit) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xd800 || c >= 0xe000) visit(c);
  }
}

std::string hexadecimal(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
  return text;
}

// Of what `of` makes of each of 4096 characters, by the first of them.
template <class Of>
std::map<std::string, std::string> hashes(Of of) {
  std::map<char32_t, std::uint64_t> blocks;
  each_character([&](char32_t c) {
    std::uint64_t& hash = blocks.try_emplace(c >> 12, 0xcbf29ce484222325U).first->second;
    for (char byte : of(c) + "\xff")
      hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  });
  std::map<std::string, std::string> texts;
  for (const auto& [block, hash] : blocks) {
    const std::string text = hexadecimal(hash);
    texts[hexadecimal(block << 12)] = std::string(16 - text.size(), '0') + text;
  }
  return texts;
}

class NormalizerOf {
 public:
  explicit NormalizerOf(const json& component)
      : normalizer_(std::move(*normalizer_from_json(component))) {}
  std::string operator()(std::string text) {
    EXPECT_TRUE(normalizer_->apply(text, scratch_).ok());
    return text;
  }
  std::string aligned(const std::string& text) {
    AlignedText out = align(text, 0);
    EXPECT_TRUE(normalizer_->apply_aligned(out, scratch_).ok());
    return out.text;
  }

 private:
  std::unique_ptr<Normalizer> normalizer_;
  RegexScratch scratch_;
};

json component_named(const std::string& name) {
  if (!name.starts_with("Bert ")) return {{"type", name}};
  json component = {{"type", "BertNormalizer"}};
  for (const char* option : {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"})
    component[option] = name.substr(5) == option;
  return component;
}

TEST(UnicodeTables, NormalizersEqualTheWheels) {
  const json cases = unicode_cases();
  for (const auto& [name, expected] : cases.at("normalizers").items()) {
    NormalizerOf normalize(component_named(name));
    const auto blocks = hashes([&](char32_t c) { return normalize(character(c)); });
    EXPECT_EQ(blocks.size(), expected.size());
    for (const auto& [block, hash] : blocks)
      EXPECT_EQ(hash, expected.at(block).get<std::string>()) << name << " from U+" << block;
  }
  EXPECT_GE(cases.at("normalizers").size(), 11u);
}

TEST(UnicodeTables, MarksAreOrderedAsInTheWheel) {
  constexpr char32_t kMarks[] = {0x334, 0x93C, 0x3099, 0x94D, 0x5B0, 0x321, 0x31B,
                                 0x316, 0x300, 0x315,  0x35C, 0x35D, 0x345};
  NormalizerOf normalize(component_named("NFD"));
  const json cases = unicode_cases();
  const auto blocks = hashes([&](char32_t c) {
    const std::string one = character(c);
    std::string moves;
    if (normalize(one) != one) return moves;
    for (const char32_t with : kMarks) {
      const std::string mark = character(with);
      const bool after = normalize("a" + one + mark) == "a" + mark + one;
      const bool before = c != with && normalize("a" + mark + one) == "a" + one + mark;
      moves += after ? "1" : "0";
      moves += before ? "1" : "0";
    }
    return moves;
  });
  for (const auto& [block, hash] : blocks)
    EXPECT_EQ(hash, cases.at("order").at(block).get<std::string>()) << "from U+" << block;
}

json pre_tokenizer_named(const std::string& name) {
  if (name == "Digits") return {{"type", name}, {"individual_digits", true}};
  if (name == "Whitespace") return {{"type", name}};
  return {{"type", "Split"}, {"pattern", {{"Regex", name}}}, {"behavior", "Isolated"}};
}

std::string ranges_text(const std::vector<char32_t>& members) {
  std::string text;
  for (std::size_t i = 0; i < members.size();) {
    std::size_t last = i;
    while (last + 1 < members.size() && members[last + 1] == members[last] + 1) ++last;
    text += (text.empty() ? "" : " ") + hexadecimal(members[i]);
    if (last > i) text += "-" + hexadecimal(members[last]);
    i = last + 1;
  }
  return text;
}

// No member of the set.
std::string surroundings(const std::string& name) {
  if (name == "Whitespace") return "_";
  for (const char* has_letters : {"\\p{L}", "\\p{Ll}", "\\p{M}", "\\p{Me}", "\\w"}) {
    if (name == has_letters) return "-";
  }
  return "a";
}

TEST(UnicodeTables, PatternsEqualTheWheels) {
  const json cases = unicode_cases();
  for (const auto& [name, expected] : cases.at("sets").items()) {
    auto splitter = pre_tokenizer_from_json(pre_tokenizer_named(name));
    ASSERT_TRUE(splitter.ok()) << name << splitter.status().to_string();
    const std::string around = surroundings(name);
    const std::size_t wanted = name == "Whitespace" ? 1 : 3;
    RegexScratch scratch;
    PieceList list;
    std::vector<char32_t> members;
    each_character([&](char32_t c) {
      if (c == U'-') return;  // hyphens stand around some
      const std::string text = around + character(c) + around;
      list.reset(text, true);
      ASSERT_TRUE((*splitter)->apply(list, scratch).ok());
      if (list.pieces.size() == wanted) members.push_back(c);
    });
    EXPECT_EQ(ranges_text(members), expected.get<std::string>()) << name;
  }
}

TEST(UnicodeTables, LaterCharactersStandBetweenWhatIsNormalized) {
  NormalizerOf nfc(component_named("NFC")), nfkc(component_named("NFKC"));
  EXPECT_EQ(nfkc(character(0x32ff)), character(0x32ff));
  EXPECT_EQ(nfc(character(0x7f3) + character(0x7fd)), character(0x7f3) + character(0x7fd));
  // What is on both sides is normalized all the same.
  const std::string e = "e\xcc\x81";
  EXPECT_EQ(nfc(e + character(0x7fd) + e), "\xc3\xa9" + character(0x7fd) + "\xc3\xa9");
  EXPECT_EQ(nfc(character(0x11935) + character(0x11930)), character(0x11935) + character(0x11930));
  for (const std::string& text :
       {e + character(0x7fd) + e, character(0x32ff) + "\xef\xbd\xb1", e, character(0x898)})
    EXPECT_EQ(nfkc.aligned(text), nfkc(text));
}

}  // namespace
}  // namespace rl
