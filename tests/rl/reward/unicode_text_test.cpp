#include "rl/reward/unicode_text.h"

#include <gtest/gtest.h>

#include <utility>

namespace rl {
namespace {

TEST(UnicodeText, WideCharactersAreAsciiAndInvisibleOnesAreGone) {
  const std::pair<const char*, const char*> cases[] = {
      {"\uff15", "5"},
      {"x\uff1d\uff11\uff12\uff05", "x=12%"},
      {"\uff08\uff11\uff0c2\uff09", "(1\uff0c2)"},  // no decimal comma
      {"5\u200b", "5"},
      {"\ufeff1\u20602", "12"},
      {"\u221a2", "\u221a2"},
      {"\xef\xbc", "\xef\xbc"},
      {"", ""}};
  for (const auto& [text, ascii] : cases) EXPECT_EQ(with_ascii_forms(text), ascii) << text;
}

TEST(UnicodeText, SignsAreLatex) {
  const std::pair<const char*, const char*> cases[] = {{"10\u207b\u00b2", "10^{-2}"},
                                                       {"2\u00b9\u2070", "2^{10}"},
                                                       {"x\u2081", "x_1"},
                                                       {"x\u2081\u2082\u00b2", "x_{12}^{2}"},
                                                       {"2\u2153", "2\\frac{1}{3}"},
                                                       {"3\u20444", "3/4"},
                                                       {"\u221a12", "\\sqrt{12}"},
                                                       {"\u221bx", "\\sqrt[3] x"},
                                                       {"\u2205", "\\emptyset "},
                                                       {"\u2220A", "\\angle A"},
                                                       {"x\u2208\u211d", "x\\in \\mathbb{R}"},
                                                       {"\u22125\u3000", "-5 "},
                                                       {"", ""}};
  for (const auto& [text, latex] : cases) EXPECT_EQ(with_latex_signs(text), latex) << text;
}

}  // namespace
}  // namespace rl
