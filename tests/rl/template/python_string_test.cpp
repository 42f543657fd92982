// Python's strings: characters, case, searches, literals. The expected texts are Python's own.
#include "rl/template/python_string.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "rl/template/letter_case.h"

namespace rl {
namespace {

TEST(PythonString, StrayBytesAreCharacters) {
  const std::string text = "a\u00e9\xff\xe2\x82\U0001F600";
  EXPECT_EQ(count_characters(text), 6);
  EXPECT_EQ(split_characters(text),
            (std::vector<std::string_view>{"a", "\u00e9", "\xff", "\xe2", "\x82", "\U0001F600"}));
  EXPECT_EQ(last_character_size(text), 4u);
  EXPECT_EQ(last_character_size("\xe2\x82"), 1u);
  EXPECT_EQ(decode_character("\U0001F600"), 0x1F600u);
  EXPECT_EQ(to_upper("\xff\u00e9"), "\xff\u00c9");
  std::string replaced;
  append_code_point(replaced, 0xD800);
  EXPECT_EQ(replaced, "\uFFFD") << "half of a surrogate pair";
}

TEST(PythonString, SearchesFromBothEndsFindWhatDoesNotOverlap) {
  for (const std::size_t length : {1u, 40u}) {
    const std::string unit(length, 'a');
    const std::string wanted = unit + unit, text = "-" + wanted + unit + "-";
    const auto places = [&](bool from_right) {
      std::vector<std::size_t> found;
      each_occurrence(text, wanted, from_right, [&found](std::size_t at) {
        found.push_back(at);
        return true;
      });
      return found;
    };
    EXPECT_EQ(places(false), std::vector<std::size_t>{1});
    EXPECT_EQ(places(true), std::vector<std::size_t>{1 + length});
    EXPECT_EQ(find_text(text, wanted), 1u);
    EXPECT_EQ(find_last_text(text, wanted), 1 + length);
    EXPECT_EQ(find_last_text(text, wanted + unit + "b"), std::string::npos);
  }
  EXPECT_EQ(find_last_text("ab", ""), 2u);
}

TEST(PythonString, CaseLooksAtNeighbours) {
  EXPECT_EQ(to_lower("\u0391\u03a3 \u03a3 \u0391\u03a3."), "\u03b1\u03c2 \u03c3 \u03b1\u03c2.");
  EXPECT_EQ(to_capitalized("\u0391\u03a3"), "\u0391\u03c2");
  EXPECT_EQ(to_title("\u0391\u03a3 \u0391\u03a3\u0391"), "\u0391\u03c2 \u0391\u03c3\u03b1");
  EXPECT_EQ(to_swapped_case("\u0391\u03a3\u00df\u01c5a"), "\u03b1\u03c3SS\u01c5A");
  EXPECT_EQ(to_title("they're \u3042a"), "They'Re \u3042A") << "a kana has no case";
  EXPECT_EQ(to_capitalized("\ufb01X"), "Fix");
  EXPECT_EQ(to_lower("\u0130"), "i\u0307");
  EXPECT_EQ(to_casefolded("Stra\u00dfe"), "strasse");
}

TEST(PythonString, ExpansionsAreFoundAtBothEndsAndNowhereElse) {
  ASSERT_NE(find_case_expansion(0xdf), nullptr);
  EXPECT_EQ(find_case_expansion(0xdf)->title, "Ss");
  ASSERT_NE(find_case_expansion(0x1fb7), nullptr);
  EXPECT_EQ(find_case_expansion(0x1fb7)->upper, "\u0391\u0342\u0399");
  ASSERT_NE(find_case_expansion(0xfb17), nullptr);
  for (const std::uint32_t character : {0u, 0xe0u, 0x1fb5u, 0xfb07u, 0x10ffffu})
    EXPECT_EQ(find_case_expansion(character), nullptr) << character;
}

TEST(PythonString, StripsAndSplitsAtPythonsBlanks) {
  const std::string accents = "\u00e9";
  EXPECT_EQ(strip_text("\x1c\u3000 a \u00a0", true, true), "a");
  EXPECT_EQ(strip_text(" a ", false, true), " a");
  EXPECT_EQ(strip_text("\u00e9\u00e8\u00e9", true, true, &accents), "\u00e8")
      << "by characters, not bytes";
  EXPECT_EQ(split_lines("a\r\nb\x0b\x1c\u2028"
                        "e\n",
                        true),
            (std::vector<std::string>{"a\r\n", "b\x0b", "\x1c", "\u2028", "e\n"}));
  EXPECT_EQ(split_lines("a\n\nb", false), (std::vector<std::string>{"a", "", "b"}));
  for (const char* text : {"a\r\nb\nc", "\u2028\u2029\u0085", ""})
    EXPECT_GE(line_bytes(text), split_lines(text, true).size() * sizeof(std::string)) << text;
}

TEST(PythonString, ClassesNeedACharacter) {
  EXPECT_FALSE(is_all("", CharacterClass::kAlpha));
  EXPECT_FALSE(is_all("1", CharacterClass::kUpper)) << "nothing with a case";
  EXPECT_TRUE(is_all("A1", CharacterClass::kUpper));
  EXPECT_FALSE(is_all("\u01c5", CharacterClass::kUpper)) << "title case is neither";
  EXPECT_TRUE(is_all("\u3042\u2167", CharacterClass::kAlnum));
  EXPECT_FALSE(is_all("\u3042\u2167", CharacterClass::kAlpha));
}

TEST(PythonString, NumbersAreOfThreeKinds) {
  using Kinds = std::array<bool, 3>;
  const auto kinds = [](std::string_view text) {
    return Kinds{is_all(text, CharacterClass::kDecimal), is_all(text, CharacterClass::kDigit),
                 is_all(text, CharacterClass::kNumeric)};
  };
  EXPECT_EQ(kinds("1\u0663\U0001d7ff"), (Kinds{true, true, true})) << "decimal digits";
  EXPECT_EQ(kinds("\u00b2\u2460\U0001f10a"), (Kinds{false, true, true})) << "other digits";
  EXPECT_EQ(kinds("\u00bd\u2167\u246b"), (Kinds{false, false, true})) << "of several digits";
  EXPECT_EQ(kinds("\u3405\u5345\U0002f890"), (Kinds{false, false, true})) << "ideographs";
  EXPECT_EQ(kinds("\u5346"), (Kinds{false, false, false})) << "an ideograph that is no number";
  EXPECT_EQ(kinds("1\u00b2a"), (Kinds{false, false, false}));
  EXPECT_EQ(kinds("\xb2"), (Kinds{false, false, false})) << "a stray byte";
  EXPECT_EQ(kinds(""), (Kinds{false, false, false}));
}

TEST(PythonString, PrintsAsPythonDoes) {
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(0.00001), "1e-05");
  EXPECT_EQ(python_float(-0.0), "-0.0");
  EXPECT_EQ(python_float(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(python_string_literal("a'b"), "\"a'b\"");
  EXPECT_EQ(python_string_literal("a'b\"c"), "'a\\'b\"c'");
  EXPECT_EQ(python_string_literal("\x7f\u0085\u200b\U0001F600\n"),
            "'\\x7f\\x85\\u200b\U0001F600\\n'");
  EXPECT_EQ(json_string("\u00e9\x7f\U0001F600\x01\b/", true),
            "\"\\u00e9\x7f\\ud83d\\ude00\\u0001\\b/\"");
  EXPECT_EQ(json_string("\u00e9\U0001F600\"", false), "\"\u00e9\U0001F600\\\"\"");
}

}  // namespace
}  // namespace rl
