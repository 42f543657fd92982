#include "rl/tokenizer/normal_form.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/tokenizer/unicode_text.h"

namespace rl {
namespace {

struct NormalForm {
  const char* name;
  bool compatible;
  bool compose;
};
constexpr NormalForm kForms[] = {
    {"D", false, false}, {"KD", true, false}, {"C", false, true}, {"KC", true, true}};

std::string in_form(std::string_view text, const NormalForm& form) {
  std::string made;
  for (const CharacterChange& change : normal_form_changes(text, form.compatible, form.compose))
    append_utf8(change.character, made);
  return made;
}

std::vector<std::string> in_all_forms(std::string_view text) {
  std::vector<std::string> forms;
  for (const NormalForm& form : kForms) forms.push_back(in_form(text, form));
  return forms;
}

using Forms = std::vector<std::string>;
using Changes = std::vector<std::pair<char32_t, int>>;

Changes changes_of(std::string_view text, bool compatible, bool compose) {
  Changes changes;
  for (const CharacterChange& change : normal_form_changes(text, compatible, compose))
    changes.emplace_back(change.character, change.change);
  return changes;
}

// What Python's unicodedata 14.0 gives, in the order D, KD, C, KC.
TEST(NormalForm, AreUnicodes) {
  EXPECT_EQ(in_all_forms("\u1e9b\u0323"),
            (Forms{"\u017f\u0323\u0307", "s\u0323\u0307", "\u1e9b\u0323", "\u1e69"}))
      << "the example of Unicode's annex 15";
  EXPECT_EQ(in_all_forms("\ufb01"), (Forms{"\ufb01", "fi", "\ufb01", "fi"}));
  EXPECT_EQ(in_all_forms("\u212b"), (Forms{"A\u030a", "A\u030a", "\u00c5", "\u00c5"}));
  EXPECT_EQ(in_all_forms("\u1112\u1161\u11ab\u11ab"),
            (Forms{"\u1112\u1161\u11ab\u11ab", "\u1112\u1161\u11ab\u11ab", "\ud55c\u11ab",
                   "\ud55c\u11ab"}));
  EXPECT_EQ(in_form("\ud55c", kForms[0]), "\u1112\u1161\u11ab");
}

TEST(NormalForm, MarksAreInTheOrderOfTheirClassesAndStableWithinOne) {
  EXPECT_EQ(in_form("q\u0307\u0323", kForms[0]), "q\u0323\u0307");
  EXPECT_EQ(in_form("a\u0301\u0316\u0302", kForms[0]), "a\u0316\u0301\u0302");
  EXPECT_EQ(in_form("a\u034f\u0301", kForms[0]), "a\u034f\u0301") << "a joiner of class 0";
}

TEST(NormalForm, ComposesOverMarksOfLowerClassesOnly) {
  const NormalForm& c = kForms[2];
  EXPECT_EQ(in_form("a\u0316\u0301", c), "\u00e1\u0316");
  EXPECT_EQ(in_form("a\u0305\u0301", c), "a\u0305\u0301") << "of the same class";
  EXPECT_EQ(in_form("a\u034f\u0301", c), "a\u034f\u0301") << "a starter in between";
  EXPECT_EQ(in_form("\u1100\u0300\u1161", c), "\u1100\u0300\u1161") << "a mark in between";
  EXPECT_EQ(in_form("\u0bc6\u0bbe", c), "\u0bca") << "of two starters";
  EXPECT_EQ(in_form("\u0958", c), "\u0915\u093c") << "what Unicode excludes is not put together";
  EXPECT_EQ(in_form("\u0301a", c), "\u0301a");
}

TEST(NormalForm, ChangesSayWhatReplacesWhat) {
  EXPECT_EQ(changes_of("\u00e9x", false, false), (Changes{{U'e', 0}, {U'\u0301', 1}, {U'x', 0}}));
  EXPECT_EQ(changes_of("e\u0301x", false, true), (Changes{{U'\u00e9', -1}, {U'x', 0}}));
  EXPECT_EQ(changes_of("\u00e9", false, true), (Changes{{U'\u00e9', 0}}));
  EXPECT_EQ(changes_of("\ufb01", true, true), (Changes{{U'f', 0}, {U'i', 1}}));
}

TEST(NormalForm, ChangesTakeEachCharacterOnce) {
  for (const char* text : {"\u1e9b\u0323a\u0305\u0301", "q\u0307\u0323\u1112\u1161\u11ab",
                           "\ufdfa\u0301\u0344", "a\u07fde\u0301\u07fd"}) {
    int characters = 0;
    for (std::size_t at = 0; at < std::string_view(text).size(); ++characters)
      next_code_point(text, at);
    for (const NormalForm& form : kForms) {
      int taken = 0;
      for (const auto& [character, change] : changes_of(text, form.compatible, form.compose))
        taken += 1 - change;
      EXPECT_EQ(taken, characters) << text << " in form " << form.name;
    }
  }
}

TEST(PartsToNormalize, EachInertCharacterIsAPart) {
  std::vector<std::pair<std::string, bool>> parts;
  for (const NormalizedPart& part : parts_to_normalize("\u07fd\u07fde\u0301"))
    parts.emplace_back(part.text, part.inert);
  EXPECT_EQ(parts, (std::vector<std::pair<std::string, bool>>{
                       {"\u07fd", true}, {"\u07fd", true}, {"e\u0301", false}}));
  EXPECT_TRUE(parts_to_normalize("").empty());
}

}  // namespace
}  // namespace rl
