#include "rl/reward/math_units.h"

#include <gtest/gtest.h>

#include <utility>

namespace rl {
namespace {

TEST(MathUnits, UnitsBehindQuantitiesGoWithTheirExponents) {
  const std::pair<const char*, const char*> cases[] = {{"10 cm^2", "10 "},
                                                       {"10cm^{2}", "10"},
                                                       {"12 square feet", "12 "},
                                                       {"12 sq. ft", "12 "},
                                                       {"9.8 m/s^2", "9.8 "},
                                                       {"60 miles per hour", "60 "},
                                                       {"4 feet 6 inches", "4 feet 6 "},  // not 46
                                                       {"(3 cm, 4 cm)", "(3 , 4 )"},
                                                       {"5 m", "5 m"},  // a variable, perhaps
                                                       {"1 500 m", "1 500 "},
                                                       {"1,500 m^2", "1,500 "},
                                                       {"1 500 m_1", "1 500 m_1"},
                                                       {"5 kg m^{-3}", "5 "},
                                                       {"5 kg\\cdot m/s^{2}", "5 "},
                                                       {"5 m\\cdot s", "5 m\\cdot s"},
                                                       {"5 sq m", "5 "},
                                                       {"5\\Omega", "5"},
                                                       {"5 k\\Omega", "5 "},
                                                       {"8:00 am", "8:00 "},
                                                       {"8 am", "8 am"},
                                                       {"2 and a half cups", "2\\frac{1}{2} "},
                                                       {"2\\cm", "2\\cm"},
                                                       {"feet", "feet"},
                                                       {"5 million", "5  \\cdot 1000000"},
                                                       {"5 million dollars", "5  \\cdot 1000000 "},
                                                       {"5 million x", "5 million x"},
                                                       {"3 cmx", "3 cmx"},
                                                       {"", ""}};
  for (const auto& [text, left] : cases) {
    std::vector<std::string> units;
    EXPECT_EQ(without_unit_words(text, units), left) << text;
  }
  std::vector<std::string> units;
  without_unit_words("(3 cm^2, 4 square feet)", units);
  EXPECT_EQ(units, (std::vector<std::string>{"cm^2", "square feet"}));
}

TEST(MathUnits, ExponentsOfUnitsAreWholeNumbers) {
  EXPECT_EQ(end_of_unit_exponent("cm^2", 2), 4u);
  EXPECT_EQ(end_of_unit_exponent("cm^{-1}", 2), 7u);
  EXPECT_EQ(end_of_unit_exponent("cm ^ {2}", 2), 8u);
  EXPECT_EQ(end_of_unit_exponent("cm^{x}", 2), 2u);
  EXPECT_EQ(end_of_unit_exponent("cm", 2), 2u);
}

TEST(MathUnits, QuantitiesEndInNumbersBracketsAndPi) {
  for (const char* quantity : {"3", "3.", "(2)", "\\frac{1}{2}", "2\\pi ", "5!"})
    EXPECT_TRUE(ends_with_quantity(quantity, false)) << quantity;
  for (const char* other : {"", "x", "word", "3+", "\\sin"})
    EXPECT_FALSE(ends_with_quantity(other, false)) << other;
  EXPECT_TRUE(ends_with_quantity("2x", true));
  EXPECT_FALSE(ends_with_quantity("even", true));
}

}  // namespace
}  // namespace rl
