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
  for (const auto& [sign, latex] : kSigns) replace_all(text, sign, latex);
  return text;
}

}  // namespace rl
