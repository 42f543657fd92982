#include "rl/reward/math_text.h"

#include <gtest/gtest.h>

#include <utility>

namespace rl {
namespace {

TEST(MathText, SaysWhatLaTeXSays) {
  const std::pair<const char*, const char*> cases[] = {
      {"\\left( 3, \\dfrac{\\pi}{2} \\right)", "( 3, \\frac{\\pi}{2} )"},
      {"$5$", "5"},
      {"\\(5\\)", "5"},
      {"\u22125", "-5"},
      {"10,\\!080", "10080"},
      {"14 {, }916", "14 ,916"},
      {"3{,}5", "3,5"},
      {"10\\text{ cm}^2", "10"},
      {"5\\text{ kg}\\cdot\\text{m}^2", "5"},
      {"3+4\\mathrm{i}", "3+4i"},
      {"2\\operatorname{arctan}(x)", "2\\arctan (x)"},
      {"5\\mathrm{~km}", "5"},
      {"4\\text{ feet }6\\text{ inches}", "4 feet 6"},
      {"19, 46, \\text{ and } 82", "19, 46, 82"},
      {"1; 2", "1, 2"},
      {"12^{\\text{th}}", "12"},
      {"\\text{Evelyn}", "Evelyn"},
      {"\\\\frac{1}{2}", "\\frac{1}{2}"},
      {"90^\\circ", "90"},
      {"50\\%.", "50"},
      {"", ""}};
  for (const auto& [answer, plain] : cases) EXPECT_EQ(plain_math(answer), plain) << answer;
}

}  // namespace
}  // namespace rl
