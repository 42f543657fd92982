#include "rl/reward/degree_signs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rl {
namespace {

std::string with_degrees(std::string text) {
  write_degrees(text);
  return text;
}

TEST(DegreeSigns, ArgumentsOfFunctionsKeepTheirDegrees) {
  for (const char* text : {"\\sin 30^\\circ", "\\sin 30^{\\circ}", "\\sin 30^o",
                           "\\sin 30\\textdegree", "\\sin 30\\text{ degrees}"})
    EXPECT_NE(with_degrees(text).find("30\\degree"), std::string::npos)
        << text << " is " << with_degrees(text);
  EXPECT_NE(with_degrees("e^{i60^\\circ}").find("60\\degree"), std::string::npos);
}

TEST(DegreeSigns, ElsewhereTheSignSaysNothing) {
  for (const char* text : {"30^\\circ", "30^{\\circ}", "30\\circ"})
    EXPECT_EQ(with_degrees(text), "30") << text;
  EXPECT_EQ(with_degrees("cosine 30^\\circ"), "cosine 30") << "a word, not the function";
}

TEST(DegreeSigns, CompositionsAndDegreesOfPolynomialsStay) {
  for (const char* text : {"f \\circ g", "\\deg f", "f \\circ (g)"})
    EXPECT_EQ(with_degrees(text), text);
}

TEST(DegreeSigns, TemperaturesLoseTheirScale) {
  EXPECT_EQ(with_degrees("25^\\circ C"), "25");
  EXPECT_EQ(with_degrees("77^{\\circ}\\text{F}"), "77");
}

}  // namespace
}  // namespace rl
