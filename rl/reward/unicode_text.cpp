#include "rl/reward/unicode_text.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "rl/reward/characters.h"
#include "rl/reward/latex_text.h"
#include "rl/reward/number_text.h"

namespace rl {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

constexpr std::string_view kInvisible[] = {"\u200b", "\u200c", "\u200d", "\u200e", "\u200f",
                                           "\u2060", "\u2061", "\u2062", "\ufeff", "\u00ad"};

constexpr Replacement kRaised[] = {
    {"\u2070", "0"}, {"\u00b9", "1"}, {"\u00b2", "2"}, {"\u00b3", "3"}, {"\u2074", "4"},
    {"\u2075", "5"}, {"\u2076", "6"}, {"\u2077", "7"}, {"\u2078", "8"}, {"\u2079", "9"},
    {"\u207a", "+"}, {"\u207b", "-"}, {"\u207d", "("}, {"\u207e", ")"}, {"\u207f", "n"}};

constexpr Replacement kLowered[] = {
    {"\u2080", "0"}, {"\u2081", "1"}, {"\u2082", "2"}, {"\u2083", "3"}, {"\u2084", "4"},
    {"\u2085", "5"}, {"\u2086", "6"}, {"\u2087", "7"}, {"\u2088", "8"}, {"\u2089", "9"},
    {"\u208a", "+"}, {"\u208b", "-"}, {"\u208d", "("}, {"\u208e", ")"}, {"\u2099", "n"}};

// In the order of their code points, and with what they are plain.
constexpr char32_t kMathLetters = 0x1d400, kMathGreek = 0x1d6a8, kMathDigits = 0x1d7ce,
                   kMathEnd = 0x1d800;

// What a number has behind it without a blank.
constexpr Replacement kUnitSigns[] = {
    {"\u339c", "mm"},   {"\u339d", "cm"},   {"\u339e", "km"},   {"\u33a0", "cm^2"},
    {"\u33a1", "m^2"},  {"\u33a2", "km^2"}, {"\u33a4", "cm^3"}, {"\u33a5", "m^3"},
    {"\u338e", "mg"},   {"\u338f", "kg"},   {"\u3396", "ml"},   {"\u7f8e\u5143", "dollars"},
    {"\u5143", "yuan"}, {"\u5186", "yen"},  {"\u4e2a", "units"}};

// Behind "\u03bc".
constexpr Replacement kMicroUnits[] = {
    {"m", "micrometers"}, {"g", "micrograms"},  {"s", "microseconds"},
    {"L", "microliters"}, {"l", "microliters"}, {"A", "microamperes"},
    {"V", "microvolts"},  {"F", "microfarads"}, {"C", "microcoulombs"}};

constexpr Replacement kSigns[] = {{"\u03b1", "\\alpha "},
                                  {"\u03b2", "\\beta "},
                                  {"\u03b3", "\\gamma "},
                                  {"\u03b4", "\\delta "},
                                  {"\u03b5", "\\epsilon "},
                                  {"\u03b7", "\\eta "},
                                  {"\u03b8", "\\theta "},
                                  {"\u03bb", "\\lambda "},
                                  {"\u03bc", "\\mu "},
                                  {"\u03c0", "\\pi "},
                                  {"\u03c1", "\\rho "},
                                  {"\u03c3", "\\sigma "},
                                  {"\u03c4", "\\tau "},
                                  {"\u03c6", "\\phi "},
                                  {"\u03d5", "\\phi "},
                                  {"\u03c8", "\\psi "},
                                  {"\u03c9", "\\omega "},
                                  {"\u0393", "\\Gamma "},
                                  {"\u0394", "\\Delta "},
                                  {"\u03a6", "\\Phi "},
                                  {"\u03a9", "\\Omega "},
                                  {"\u221e", "\\infty "},
                                  {"\u2264", "\\le "},
                                  {"\u2a7d", "\\le "},
                                  {"\u2265", "\\ge "},
                                  {"\u2a7e", "\\ge "},
                                  {"\u2260", "\\ne "},
                                  {"\u2248", "\\approx "},
                                  {"\u222a", "\\cup "},
                                  {"\u2229", "\\cap "},
                                  {"\u2208", "\\in "},
                                  {"\u2205", "\\emptyset "},
                                  {"\u2220", "\\angle "},
                                  {"\u25b3", "\\triangle "},
                                  {"\u211d", "\\mathbb{R}"},
                                  {"\u2124", "\\mathbb{Z}"},
                                  {"\u211a", "\\mathbb{Q}"},
                                  {"\u2115", "\\mathbb{N}"},
                                  {"\u2102", "\\mathbb{C}"},
                                  {"\u00b1", "\\pm "},
                                  {"\u2213", "\\mp "},
                                  {"\u00d7", "\\times "},
                                  {"\u00f7", "\\div "},
                                  {"\u22c5", "\\cdot "},
                                  {"\u2219", "\\cdot "},
                                  {"\u00b7", "\\cdot "},
                                  {"\u2217", "*"},
                                  {"\u2044", "/"},
                                  {"\u2215", "/"},
                                  {"\u2032", "'"},
                                  {"\u27e8", "("},
                                  {"\u27e9", ")"},
                                  {"\u00b0", "\\degree "},
                                  {"\uff0c", ","},
                                  {"\uff1b", ";"},
                                  {"\u3002", ". "},
                                  {"\u2016", "\\|"},
                                  {"\u2223", "|"},
                                  {"\u230a", "\\lfloor "},
                                  {"\u230b", "\\rfloor "},
                                  {"\u2308", "\\lceil "},
                                  {"\u2309", "\\rceil "},
                                  {"\u00ac", "\\neg "},
                                  {"\u2192", "\\to "},
                                  {"\u2200", "\\forall "},
                                  {"\u2203", "\\exists "},
                                  {"\u2207", "\\nabla "},
                                  {"\u2202", "\\partial "},
                                  {"\u2261", "\\equiv "},
                                  {"\u2103", "\\degree C"},
                                  {"\u2109", "\\degree F"},
                                  {"\u00ba", "\\degree "},
                                  {"\u02da", "\\degree "},
                                  {"\u2126", "\\Omega "},
                                  {"\u20b9", ""},
                                  {"\u20bd", ""},
                                  {"\u20a9", ""},
                                  {"\u20ab", ""},
                                  {"\u20aa", ""},
                                  {"\u20b1", ""},
                                  {"\u20ac", ""},
                                  {"\u00a3", ""},
                                  {"\u00a5", ""},
                                  {"\u00a2", ""},
                                  {"\u00a0", " "},
                                  {"\u2002", " "},
                                  {"\u2003", " "},
                                  {"\u2004", " "},
                                  {"\u2005", " "},
                                  {"\u2006", " "},
                                  {"\u2007", " "},
                                  {"\u2008", " "},
                                  {"\u2009", " "},
                                  {"\u200a", " "},
                                  {"\u202f", " "},
                                  {"\u205f", " "},
                                  {"\u3000", " "},
                                  {"\u00bd", "\\frac{1}{2}"},
                                  {"\u2153", "\\frac{1}{3}"},
                                  {"\u2154", "\\frac{2}{3}"},
                                  {"\u00bc", "\\frac{1}{4}"},
                                  {"\u00be", "\\frac{3}{4}"},
                                  {"\u2155", "\\frac{1}{5}"},
                                  {"\u2156", "\\frac{2}{5}"},
                                  {"\u2157", "\\frac{3}{5}"},
                                  {"\u2158", "\\frac{4}{5}"},
                                  {"\u2159", "\\frac{1}{6}"},
                                  {"\u215a", "\\frac{5}{6}"},
                                  {"\u2150", "\\frac{1}{7}"},
                                  {"\u215b", "\\frac{1}{8}"},
                                  {"\u215c", "\\frac{3}{8}"},
                                  {"\u215d", "\\frac{5}{8}"},
                                  {"\u215e", "\\frac{7}{8}"},
                                  {"\u2151", "\\frac{1}{9}"},
                                  {"\u2152", "\\frac{1}{10}"}};

/// The characters of `table` that follow each other at `at`, as ASCII; `at` ends behind them.
std::string take_signs(std::string_view text, std::size_t& at, std::span<const Replacement> table) {
  std::string run;
  for (bool found = true; found;) {
    found = false;
    for (const auto& [sign, ascii] : table) {
      if (!text.substr(at).starts_with(sign)) continue;
      run += ascii;
      at += sign.size();
      found = true;
    }
  }
  return run;
}

/// "10⁻²" with one exponent, "x₁₂" with one index.
std::string with_raised_and_lowered(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string raised = take_signs(text, at, kRaised);
    if (!raised.empty()) out += "^{" + raised + "}";
    const std::string lowered = take_signs(text, at, kLowered);
    if (!lowered.empty()) out += lowered.size() == 1 ? "_" + lowered : "_{" + lowered + "}";
    if (raised.empty() && lowered.empty()) out += text[at++];
  }
  return out;
}

/// The number behind a sign of a root is all of it: "√12" is no "\sqrt 12", which is \sqrt{1} 2.
void write_roots(std::string& text) {
  for (const auto& [sign, command] :
       {Replacement{"\u221a", "\\sqrt"}, {"\u221b", "\\sqrt[3]"}, {"\u221c", "\\sqrt[4]"}}) {
    for (std::size_t at = text.find(sign); at != text.npos; at = text.find(sign, at)) {
      const std::size_t begin = at + sign.size();
      std::size_t end = begin;
      while (end < text.size() && is_digit(text[end])) ++end;
      const std::string number = text.substr(begin, end - begin);
      text.replace(at, end - at,
                   std::string(command) + (number.empty() ? " " : "{" + number + "}"));
    }
  }
}

/// Signs for units behind numbers as words, which are units wherever they stand.
void write_units(std::string& text) {
  for (const auto& [sign, unit] : kUnitSigns) {
    for (std::size_t at = text.find(sign, 1); at != text.npos; at = text.find(sign, at + 1)) {
      const bool is_behind = is_digit(text[at - 1]) || text[at - 1] == ' ' || text[at - 1] == '}';
      if (is_behind) text.replace(at, sign.size(), "\\text{ " + std::string(unit) + "}");
    }
  }
}

/// "5 µm" has micrometers, and \mu m none: it is a product.
void write_micro_units(std::string& text) {
  constexpr std::string_view kMicro = "\u03bc";
  replace_all(text, "\u00b5", kMicro);
  for (std::size_t at = text.find(kMicro, 1); at != text.npos; at = text.find(kMicro, at + 1)) {
    const std::size_t letter = at + kMicro.size(), before = text.find_last_not_of(' ', at - 1);
    const bool is_behind = before != text.npos && (is_digit(text[before]) || text[before] == '}');
    const bool is_alone = letter + 1 >= text.size() || !is_letter(text[letter + 1]);
    const auto* unit =
        std::find_if(std::begin(kMicroUnits), std::end(kMicroUnits),
                     [&](const Replacement& one) { return text.substr(letter, 1) == one.first; });
    if (is_behind && is_alone && unit != std::end(kMicroUnits))
      text.replace(at, letter + 1 - at, "\\text{ " + std::string(unit->second) + "}");
  }
}

std::string utf8(char32_t point) {
  std::string bytes;
  if (point < 0x80) return {static_cast<char>(point)};
  if (point >= 0x800) bytes += static_cast<char>(0xe0 | point >> 12);
  bytes += static_cast<char>(point >= 0x800 ? 0x80 | (point >> 6 & 0x3f) : 0xc0 | point >> 6);
  bytes += static_cast<char>(0x80 | (point & 0x3f));
  return bytes;
}

/// The plain form of a bold, italic, or otherwise styled letter or digit: "𝟓" is "5", "𝜋" is "π".
/// Empty: it is none.
std::string plain_form(char32_t point) {
  constexpr char32_t kAlphabet = 26, kGreekStyle = 58, kSmallGreek = 26, kGreekSigns = 51;
  constexpr char32_t kVariants[] = {0x2202, 0x3f5, 0x3d1, 0x3f0, 0x3d5, 0x3f1, 0x3d6};
  if (point == 0x210e) return "h";  // where the italic one would be
  if (point < kMathLetters || point >= kMathEnd) return {};
  if (point >= kMathDigits) return utf8('0' + (point - kMathDigits) % 10);
  if (point < kMathGreek - 4) {  // four code points are other letters
    const char32_t letter = (point - kMathLetters) % (2 * kAlphabet);
    return utf8(letter < kAlphabet ? 'A' + letter : 'a' + letter - kAlphabet);
  }
  if (point < kMathGreek || point >= kMathGreek + 5 * kGreekStyle) return {};
  const char32_t letter = (point - kMathGreek) % kGreekStyle;
  if (letter >= kGreekSigns) return utf8(kVariants[letter - kGreekSigns]);
  if (letter >= kSmallGreek) return utf8(0x3b1 + letter - kSmallGreek);
  if (letter == kSmallGreek - 1) return utf8(0x2207);
  constexpr char32_t kTheta = 17;  // a second one, where Unicode has no letter
  return utf8(letter == kTheta ? 0x398 : 0x391 + letter);
}

/// The three or four bytes at `at` as a code point; 0: they are none.
char32_t long_code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const std::size_t size = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 0;
  if (size == 0 || at + size > text.size()) return 0;
  char32_t point = byte(0) & (size == 4 ? 0x07 : 0x0f);
  for (std::size_t i = 1; i < size; ++i) point = point << 6 | (byte(i) & 0x3f);
  return point;
}

}  // namespace

std::string with_ascii_forms(std::string_view text) {
  constexpr std::string_view kKept[] = {"\uff0c", "\uff1b"};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto begins = [rest](std::string_view sign) { return rest.starts_with(sign); };
    if (const auto* found = std::find_if(std::begin(kInvisible), std::end(kInvisible), begins);
        found != std::end(kInvisible)) {
      at += found->size();
      continue;
    }
    const char32_t point = long_code_point_at(text, at);
    if (const std::string plain = plain_form(point); !plain.empty()) {
      out += plain;
      at += point > 0xffff ? 4 : 3;
      continue;
    }
    // U+FF01 to U+FF5E have the order of "!" to "~".
    const auto byte = [rest](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
    const bool is_wide =
        rest.size() >= 3 && byte(0) == 0xef &&
        ((byte(1) == 0xbc && byte(2) >= 0x81) || (byte(1) == 0xbd && byte(2) <= 0x9e)) &&
        std::none_of(std::begin(kKept), std::end(kKept), begins);
    out +=
        is_wide ? static_cast<char>((byte(1) == 0xbc ? byte(2) - 0x60 : byte(2) - 0x20)) : text[at];
    at += is_wide ? 3 : 1;
  }
  return out;
}

std::string with_latex_signs(std::string_view written) {
  std::string text = with_raised_and_lowered(with_plain_minus(written));
  write_roots(text);
  write_units(text);
  write_micro_units(text);
  for (const auto& [sign, latex] : kSigns) replace_all(text, sign, latex);
  return text;
}

}  // namespace rl
