#include "rl/tokenizer/scripts.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rl {
namespace {

// As the tokenizers wheel 0.23.3 keeps two characters together or splits between them.
TEST(ScriptOf, KanaAreHanAndTheirMarkOfLengthToo) {
  for (const char32_t c : {U'\u3072', U'\u30ab', U'\uff76', U'\u30fc', U'\u3005', U'\U00020000'})
    EXPECT_EQ(script_of(c), script_of(U'\u6f22')) << static_cast<std::uint32_t>(c);
  EXPECT_NE(script_of(U'\ud55c'), script_of(U'\u6f22'));
  EXPECT_NE(script_of(U'\u30fb'), script_of(U'\u6f22')) << "the middle dot is punctuation";
}

TEST(ScriptOf, PunctuationDigitsAndSymbolsAreOneScript) {
  for (const char32_t c : {U'!', U'@', U'[', U'`', U'{', U'\t', U'\u00a0', U'\u00a9', U'\u2028',
                           U'\u3000', U'\U0001f600'})
    EXPECT_EQ(script_of(c), script_of(U'1')) << static_cast<std::uint32_t>(c);
  EXPECT_NE(script_of(U'\u0663'), script_of(U'1')) << "Arabic digits are Arabic";
  EXPECT_NE(script_of(U'a'), script_of(U'1'));
}

TEST(ScriptOf, LettersThatLookAlikeHaveTheirOwn) {
  for (const char32_t c : {U'A', U'Z', U'z', U'\u00aa', U'\u00e9'})
    EXPECT_EQ(script_of(c), script_of(U'a')) << static_cast<std::uint32_t>(c);
  EXPECT_NE(script_of(U'\u0430'), script_of(U'a'));
  EXPECT_NE(script_of(U'\u03b1'), script_of(U'a'));
  EXPECT_NE(script_of(U'\u0301'), script_of(U'a')) << "marks are inherited, a script by itself";
  EXPECT_EQ(script_of(U'\u0301'), script_of(U'\U000e01ef'));
}

TEST(ScriptOf, SpacesAndWhatIsNotAssignedJoinAny) {
  for (const char32_t c : {U' ', U'\u0378', U'\U000e01f0', U'\U0010ffff'})
    EXPECT_EQ(script_of(c), kAnyScript) << static_cast<std::uint32_t>(c);
  EXPECT_NE(script_of(U'\0'), kAnyScript);
}

}  // namespace
}  // namespace rl
