// Answers with units, number words, degrees and powers of ten, by what math_answer.h says of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rl/reward/math_answer.h"

namespace rl {
namespace {

struct Answers {
  std::string a, b;
};

void expect_same(const std::vector<Answers>& pairs) {
  for (const auto& [a, b] : pairs) {
    EXPECT_TRUE(equivalent(a, b)) << a << "   " << b << "   (" << normal_form(a) << " | "
                                  << normal_form(b) << ")";
    EXPECT_TRUE(equivalent(b, a)) << b << "   " << a;
  }
}

void expect_different(const std::vector<Answers>& pairs) {
  for (const auto& [a, b] : pairs) {
    EXPECT_FALSE(equivalent(a, b))
        << a << "   " << b << "   (" << normal_form(a) << " | " << normal_form(b) << ")";
    EXPECT_FALSE(equivalent(b, a)) << b << "   " << a;
  }
}

TEST(MathQuantity, NumberWordsAreFactors) {
  expect_same({{"5\\text{ lakh}", "500000"},
               {"1\\text{ crore}", "10^7"},
               {"5 lakh rupees", "500,000"},
               {"5\\text{ gross}", "720"},
               {"4\\text{ tens}", "40"},
               {"3\\text{ sixteenths}", "\\frac{3}{16}"},
               {"1.5\\text{ bn}", "1500000000"},
               {"5\\text{ quarters}", "5"},
               {"80\\text{ score}", "80"},
               {"5\\text{-million}", "5000000"},
               {"2\\text{ and a half}", "2.5"},
               {"2\\text{ and a half hours}", "2.5"},
               {"2 and three quarters", "\\frac{11}{4}"},
               {"\\text{negative }5", "-5"},
               {"\\text{minus }\\frac12", "-0.5"},
               {"(1, \\text{negative }2)", "(1,-2)"},
               {"\\text{negative 5}", "-5"}});
  expect_different({{"5\\text{ lakh}", "5"},
                    {"1\\text{ crore}", "1"},
                    {"5\\text{ gross}", "5"},
                    {"4\\text{ tens}", "4"},
                    {"2\\text{ and a half}", "2"},
                    {"2\\text{ and a half}", "2,\\frac12"},
                    {"\\text{negative }5", "5"},
                    {"5\\text{ minus }3", "-15"}});
}

TEST(MathQuantity, WordsThatChangeTheValueAreNoUnits) {
  expect_different({{"5\\text{ eighteenths}", "5"},
                    {"5\\text{ triple}", "5"},
                    {"\\$5\\text{ lost}", "5"},
                    {"5\\text{ square roots}", "5"},
                    {"8\\text{ cube root}", "8"},
                    {"5\\text{ seventeens}", "5\\text{ eighteens}"}});
  expect_same({{"5\\text{ roots}", "5"},
               {"5\\text{ test scores}", "5"},
               {"5\\text{ real roots}", "5"},
               {"5\\text{ days}", "5"},
               {"\\$500\\text{ loss}", "500"},
               {"12\\text{ years ago}", "12"},
               {"12\\text{ before tax}", "12"},
               {"15\\%\\text{ decrease}", "15\\%"}});
}

TEST(MathQuantity, PowersOfTenAreNumbers) {
  expect_same({{"1e3", "1000"},
               {"1E3", "1000"},
               {"1.5e6", "1,500,000"},
               {"-1.5e+06", "-1500000"},
               {"0.00001", "1e-05"},
               {"10^{-5}", "1e-05"},
               {"\\frac{1}{100000}", "1e-05"},
               {"1000000000000000000", "1e+18"},
               {"10^{18}", "1e+18"},
               {"3\\times10^8", "3e8"},
               {"10000000000000000000000", "1e+22"},
               {"1e400", "10e399"},
               {"x = 2.5e-07", "2.5\\times10^{-7}"},
               {"(1e3, 2)", "(1000,2)"},
               {"0.001\\%", "1e-05"},
               {"5e3\\text{ m}", "5000"},
               {"2*1e3", "2000"},
               {"\\frac{1e-03}{2}", "0.0005"},
               {"2e-5+x", "2e+x-5"},
               {"2e-5", "2e - 5"},
               {"2e-5", "0.00002"},
               {"2e", "2\\mathrm{e}"}});
  expect_different({{"1e3", "3e"},
                    {"1e3", "e^3"},
                    {"1e-05", "e-5"},
                    {"1e-05", "0.0001"},
                    {"1e-20", "2e-20"},
                    {"1e400", "1e401"},
                    {"1000000000000000001", "1e+18"},
                    {"2e^3", "2000"},
                    {"2e - 5", "0.00002"}});
}

TEST(MathQuantity, DegreesCountInAllArguments) {
  expect_same({{"\\sin 30\\text{ degrees}", "\\frac12"},
               {"\\sin(30\\text{ degrees})", "\\frac12"},
               {"\\sin 30 degrees", "0.5"},
               {"\\sin 30^o", "0.5"},
               {"\\sin 30^{\\text{o}}", "0.5"},
               {"\\sin(30\\textdegree)", "0.5"},
               {"\\sin(30\\deg)", "0.5"},
               {"\\sin 30\u00ba", "0.5"},
               {"30\u00ba", "30"},
               {"30^o", "30"},
               {"\\operatorname{cis} 60^\\circ", "\\frac12+\\frac{\\sqrt3}{2}i"},
               {"2\\text{cis}(90^\\circ)", "2i"},
               {"\\operatorname{cis}\\frac{\\pi}{2}", "i"},
               {"e^{i60^\\circ}", "\\frac12+\\frac{\\sqrt3}{2}i"},
               {"e^{i 60^\\circ}", "\\frac12+\\frac{\\sqrt3}{2}i"},
               {"2e^{30^\\circ i}", "\\sqrt3+i"},
               {"\\tg 45^\\circ", "1"},
               {"\\operatorname{tg}45^\\circ", "1"},
               {"\\ctg 45^\\circ", "1"},
               {"\\sin(30)^\\circ", "0.5"},
               {"\\sin 30^{\\rm o}", "0.5"},
               {"e^2, 30^\\circ", "30, e^2"},
               {"30\\text{ degrees}", "30"}});
  expect_different({{"\\sin 30\\text{ degrees}", "\\sin 30"},
                    {"\\sin(30\\text{ degrees})", "\\sin 30"},
                    {"\\operatorname{cis} 60^\\circ", "\\operatorname{cis} 60"},
                    {"e^{i60^\\circ}", "e^{60i}"},
                    {"\\tg 45^\\circ", "\\tg 45"},
                    {"\\ctg 45^\\circ", "\\ctg 45"},
                    {"x^o", "x"},
                    {"\\deg f", "f"}});
}

TEST(MathQuantity, UnitsThatBothNameCount) {
  expect_same({{"5 cm", "5 centimeters"},
               {"5\\text{ cm}", "5"},
               {"10\\frac{\\text{m}}{\\text{s}}", "10 m/s"},
               {"60 mph", "60\\text{ miles per hour}"},
               {"15 cm^2", "15\\text{ square centimeters}"},
               {"16 units^2", "16\\text{ cm}^2"},
               {"(3\\text{ cm},4\\text{ m})", "(3,4)"},
               {"(3 cm, 4 km)", "(3\\text{ cm}, 4\\text{ km})"},
               {"3 cm, 4 km", "4 km, 3 cm"},
               {"3, 4 cm", "3 cm, 4 cm"}});
  expect_different({{"5 cm", "5 km"},
                    {"5\\text{ cm}", "5\\text{ m}"},
                    {"60 km/h", "60\\text{ m}/\\text{s}"},
                    {"20 dollars", "20\\text{ cents}"},
                    {"(3 cm, 4 km)", "(3 km, 4 cm)"},
                    {"(3 cm, 4 km)", "(3 cm, 4 cm)"},
                    {"[3\\text{ cm}, 4\\text{ m}]", "[3\\text{ m}, 4\\text{ cm}]"},
                    {"3 cm, 4 km", "4 cm, 3 km"},
                    {"\\{3 cm, 4 km\\}", "\\{3 km, 4 cm\\}"}});
}

TEST(MathQuantity, UnitsHaveManyForms) {
  expect_same({{"5 kW", "5"},
               {"5 kWh", "5"},
               {"5 eV", "5"},
               {"5 \u00b5m", "5"},
               {"5 \u03bcm", "5"},
               {"5\\,\\mu\\text{m}", "5"},
               {"5 \u03a9", "5"},
               {"5\\,\\Omega", "5"},
               {"5 k\u03a9", "5"},
               {"5\\text{ k}\\Omega", "5"},
               {"5\u2103", "5"},
               {"5\u339d", "5"},
               {"5 \u5143", "5"},
               {"5 kg m^{-3}", "5"},
               {"5 kg\u00b7m/s\u00b2", "5"},
               {"5\\frac{m}{s}", "5"},
               {"5\\,\\mathrm{kg\\,m^{-3}}", "5"},
               {"5\\,\\mathrm{\\mu m}", "5"},
               {"5\\tfrac{\\mathrm{m}}{\\mathrm{s}^2}", "5"},
               {"3\\times10^8\\,\\mathrm{m\\cdot s^{-1}}", "300000000"},
               {"5 sq m", "5"},
               {"USD 5", "5"},
               {"US$5", "5"},
               {"\\pounds 5", "5"},
               {"\\text{Rs. }5", "5"},
               {"\u20b9500", "500"},
               {"5 per cent", "5"},
               {"5 per cent", "0.05"},
               {"5\\text{ per cent}", "0.05"},
               {"8:00 am", "8:00 a.m."},
               {"8 a.m.", "8\\text{ AM}"}});
  expect_different({{"5 m", "5"},
                    {"5 \\mu m", "5"},
                    {"5m\\cdot s", "5"},
                    {"5\\frac{m}{x}", "5"},
                    {"5\\frac{h}{m}", "5"},
                    {"2x\\frac{m}{s}", "2x"},
                    {"5\\frac{m}{s}x", "5x"},
                    {"5\\Omega_1", "5"},
                    {"5\\Omega x", "5x"},
                    {"8:00 am", "8:00 p.m."},
                    {"5am", "5"},
                    {"US 5", "-5"}});
}

}  // namespace
}  // namespace rl
