#include "rl/reward/quantity_words.h"

#include <gtest/gtest.h>

#include <utility>

namespace rl {
namespace {

TEST(QuantityWords, FactorsAndPowersAreLatex) {
  const std::pair<const char*, const char*> cases[] = {
      {"million", " \\cdot 1000000"},
      {"Thousand dollars", " \\cdot 1000"},
      {"hundred thousand", " \\cdot 100 \\cdot 1000"},
      {"dozens", " \\cdot 12"},
      {"lakh rupees", " \\cdot 100000"},
      {"gross", " \\cdot 144"},
      {"quarters", ""},
      {"-million", " \\cdot 1000000"},
      {"halves", " \\cdot \\frac{1}{2}"},
      {"squared", "^{2}"},
      {"factorial", "!"},
      {"half-hours", ""},
      {"squared centimeters", ""},
      {"cm", ""},
      {"", ""}};
  for (const auto& [words, latex] : cases) EXPECT_EQ(leading_scale(words).latex, latex) << words;
  EXPECT_EQ(leading_scale("thousand dollars").end, 9u);
}

TEST(QuantityWords, FractionsAreAdded) {
  EXPECT_EQ(leading_fraction("and a half hours").latex, "\\frac{1}{2}");
  EXPECT_EQ(leading_fraction("and a half hours").end, 10u);
  EXPECT_EQ(leading_fraction("and three-quarters").latex, "\\frac{3}{4}");
  for (const char* other : {"and 3", "a half", "and five halves", "and a million", "and", ""})
    EXPECT_EQ(leading_fraction(other).end, 0u) << other;
}

TEST(QuantityWords, WhatMakesAnotherQuantityIsNoUnit) {
  for (const char* words :
       {"is not a solution", "or more", "and a half", "miles north", "below zero", "left",
        "half-hours", "isn't right", "squared cm", "over two"})
    EXPECT_TRUE(changes_quantity(words)) << words;
  for (const char* words : {"cm", "cookies left", "feet squared", "square miles", "a.m.",
                            "one-dollar bills", "ways", ""})
    EXPECT_FALSE(changes_quantity(words)) << words;
}

TEST(QuantityWords, OtherThingsAreOtherAnswers) {
  const auto differ = [](const char* a, const char* b) {
    return have_different_units({a}, {b}) && have_different_units({b}, {a});
  };
  EXPECT_TRUE(differ("a.m.", "p.m."));
  EXPECT_TRUE(differ("apples", "pears"));
  EXPECT_TRUE(differ("apples", "dollars"));
  EXPECT_TRUE(differ("steps left", "steps right"));
  EXPECT_TRUE(differ("red apples", "green apples"));
  EXPECT_FALSE(differ("apples", "apple"));
  EXPECT_FALSE(differ("red apples", "apples"));
  EXPECT_FALSE(differ("A.M.", "am"));
  EXPECT_FALSE(differ("cm", "centimeters"));
  EXPECT_FALSE(differ("kJ", "kilojoules"));
  EXPECT_FALSE(differ("ways", "possibilities"));
  EXPECT_FALSE(differ("km/h", "kilometers per hour"));
  EXPECT_FALSE(differ("only", "apples"));
  EXPECT_TRUE(differ("cm", "m"));
  EXPECT_TRUE(differ("hours", "minutes"));
  EXPECT_TRUE(differ("km/h", "m/s"));
  EXPECT_TRUE(differ("dollars", "cents"));
  EXPECT_TRUE(differ("mph", "km/h"));
  EXPECT_FALSE(differ("mph", "miles per hour"));
  EXPECT_FALSE(differ("square feet", "ft"));
  EXPECT_FALSE(differ("units", "cm")) << "which may be any";
  EXPECT_FALSE(differ("pounds", "dollars")) << "of several meanings";
  EXPECT_FALSE(have_different_units({}, {"apples"}));
  EXPECT_FALSE(have_different_units({"apples", "pears"}, {"pears"}));
}

}  // namespace
}  // namespace rl
