#include "rl/reward/quantity_words.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "rl/reward/characters.h"
#include "rl/reward/math_units.h"
#include "rl/reward/number_text.h"
#include "rl/reward/unit_names.h"

namespace rl {
namespace {

constexpr std::pair<std::string_view, std::string_view> kFactors[] = {
    {"hundred", "100"},
    {"thousand", "1000"},
    {"million", "1000000"},
    {"billion", "1000000000"},
    {"trillion", "1000000000000"},
    {"quadrillion", "1000000000000000"},
    {"bn", "1000000000"},
    {"mn", "1000000"},
    {"mln", "1000000"},
    {"myriad", "10000"},
    {"lakh", "100000"},
    {"lac", "100000"},
    {"crore", "10000000"},
    {"ten", "10"},
    {"dozen", "12"},
    {"gross", "144"},
    {"half", "\\frac{1}{2}"},
    {"halve", "\\frac{1}{2}"},
    {"third", "\\frac{1}{3}"},
    {"fourth", "\\frac{1}{4}"},
    {"quarter", "\\frac{1}{4}"},
    {"fifth", "\\frac{1}{5}"},
    {"sixth", "\\frac{1}{6}"},
    {"seventh", "\\frac{1}{7}"},
    {"eighth", "\\frac{1}{8}"},
    {"ninth", "\\frac{1}{9}"},
    {"tenth", "\\frac{1}{10}"},
    {"twelfth", "\\frac{1}{12}"},
    {"sixteenth", "\\frac{1}{16}"},
    {"twentieth", "\\frac{1}{20}"},
    {"hundredth", "\\frac{1}{100}"},
    {"thousandth", "\\frac{1}{1000}"},
    {"millionth", "\\frac{1}{1000000}"},
    {"billionth", "\\frac{1}{1000000000}"}};

constexpr std::pair<std::string_view, std::string_view> kPowers[] = {
    {"squared", "^{2}"}, {"cubed", "^{3}"}, {"factorial", "!"}, {"pi", "\\pi"}};

// Wherever they stand.
constexpr std::string_view kMeaningful =
    " not no none never neither nor without isn aren doesn don cannot except excluding impossible "
    "invalid undefined false wrong incorrect more less fewer greater least most smaller larger "
    "bigger higher lower above below under beyond minus plus negative positive opposite reciprocal "
    "inverse infinity infinite factorial pi mod modulo base remainder divided multiplied twice "
    "double triple treble quadruple if unless when where north south east west northeast northwest "
    "southeast southwest "
    "clockwise counterclockwise anticlockwise forward forwards backward backwards bc bce ";

// Without a hyphen: "one-dollar bills" are counted.
constexpr std::string_view kNumbers =
    " zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety ";

// Of "a half" and "three quarters", in order.
constexpr std::string_view kNumerators[] = {"one", "two",   "three", "four", "five",
                                            "six", "seven", "eight", "nine"};

// Before all other words.
constexpr std::string_view kGoOn = " or and at to but over squared cubed ";

// Factors before all other words alone: "gross" of "gross dollars" is counted.
constexpr std::string_view kAlsoThings = " gross quarter quarters ";

// Behind a number coins, as a rule; in "three quarters" a fraction.
constexpr std::string_view kCoins = " quarter quarters ";

// Alone: "3 cookies left" and "3 games lost" are 3.
constexpr std::string_view kDirections = " left right up down lost short ";

constexpr std::string_view kFillers =
    " of the a an in on per each and is are for with about approximately exactly roughly only "
    "total altogether possible different distinct square squared cubic cubed sq cu linear cdot ";

// Signs and names of measures besides those that may be plain words, and what is counted without
// saying what; singular.
constexpr std::string_view kMeasures =
    " j kj w kw mw kwh wh v mv kv a ma n kn pa kpa mpa atm bar k c f l t ev kev mev hz khz mhz ghz "
    "rpm ppm kilojoule kilowatt megawatt calorie cal kcal kilocalorie ohm ampere amp coulomb farad "
    "henry tesla weber pascal kelvin celsius fahrenheit mole molar gauss lumen lux bit byte kb mb "
    "gb tb knot fathom furlong decade century micrometer nanometer micron nanosecond millisecond "
    "microsecond milligram microgram angstrom decimeter fluid penny pennie nickel pence rupee "
    "ruble yuan microliter microampere microvolt microfarad microcoulomb omega "
    "peso franc yen case choice possibility outcome arrangement combination permutation number "
    "value solution item element object thing member option entry ";

bool is_among(std::string_view word, std::string_view list) {
  return !word.empty() && list.find(" " + std::string(word) + " ") != list.npos;
}

/// In small letters; "a.m." is one. With `hyphens` "one-dollar" is one, too.
std::vector<std::string> words_of(std::string_view text, bool hyphens = false) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_letter(c) || (hyphens && c == '-'))
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c != '.' && !words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string singular(std::string word) {
  if (word.size() > 4 && word.ends_with("ies")) return word.substr(0, word.size() - 3) + "y";
  for (const std::string_view ending : {"ches", "shes", "xes", "sses"}) {
    if (word.ends_with(ending)) return word.substr(0, word.size() - 2);
  }
  if (word.size() > 2 && word.ends_with('s') && !word.ends_with("ss")) word.pop_back();
  return word;
}

/// The LaTeX of a factor; empty when the word is none.
std::string_view factor_of(const std::string& word) {
  const std::string one = singular(word);
  for (const auto& [name, latex] : kFactors) {
    if (one == name) return latex;
  }
  return {};
}

/// What a phrase names, without fillers.
std::set<std::string> named_things(std::string_view phrase) {
  std::set<std::string> things;
  for (std::string& word : words_of(phrase)) {
    if (!is_among(word, kFillers)) things.insert(singular(std::move(word)));
  }
  return things;
}

bool is_measure(const std::string& thing) {
  return is_unit_word(thing) || is_unit_word(thing + "s") || is_among(thing, kMeasures) ||
         thing == "m" || thing == "s" || thing == "g" || thing == "h" || thing == "usd";
}

/// The signs of measures; empty where one is not known, which may be a name of any other.
std::set<std::string> signs_of(const std::set<std::string>& things) {
  std::set<std::string> signs;
  for (const std::string& thing : things) {
    std::string_view sign = unit_sign(thing);
    if (sign.empty()) return {};
    if (const std::size_t blank = sign.find(' '); blank != sign.npos) {
      signs.emplace(sign.substr(0, blank));
      sign.remove_prefix(blank + 1);
    }
    signs.emplace(sign);
  }
  return signs;
}

/// Whether one has all that the other has.
bool has_all_of_other(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::includes(a.begin(), a.end(), b.begin(), b.end()) ||
         std::includes(b.begin(), b.end(), a.begin(), a.end());
}

/// What one phrase counts or measures.
struct Phrase {
  std::set<std::string> things;
  bool is_measured = false;
  std::set<std::string> signs;  // of what is measured, where they are known

  /// Whether one says what the other does, in as many words or in more.
  bool agrees_with(const Phrase& other) const {
    if (is_measured && other.is_measured) return has_all_of_other(signs, other.signs);
    return has_all_of_other(things, other.things);
  }
};

std::vector<Phrase> phrases_of(const std::vector<std::string>& texts) {
  std::vector<Phrase> phrases;
  for (const std::string& text : texts) {
    std::set<std::string> things = named_things(text);
    if (things.empty()) continue;
    const bool is_measured = std::all_of(things.begin(), things.end(), is_measure);
    std::set<std::string> signs = is_measured ? signs_of(things) : std::set<std::string>();
    phrases.push_back({std::move(things), is_measured, std::move(signs)});
  }
  return phrases;
}

bool are_all_said(const std::vector<Phrase>& some, const std::vector<Phrase>& all) {
  return std::all_of(some.begin(), some.end(), [&](const Phrase& mine) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Phrase& theirs) { return mine.agrees_with(theirs); });
  });
}

/// "square roots", "cube root": of the number before them.
bool has_root_of_number(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (is_among(words[i], " root roots ") && is_among(words[i - 1], " square cube cubic "))
      return true;
  }
  return false;
}

/// 1 of "a" and "one", 3 of "three"; 0: no numerator.
std::size_t numerator_of(std::string_view word) {
  if (word == "a" || word == "an") return 1;
  const auto* found = std::find(std::begin(kNumerators), std::end(kNumerators), word);
  return found == std::end(kNumerators)
             ? 0
             : static_cast<std::size_t>(found - std::begin(kNumerators)) + 1;
}

}  // namespace

LeadingScale leading_fraction(std::string_view words) {
  constexpr std::string_view kAnd = "and ", kFraction = "\\frac{1}{";
  if (!words.starts_with(kAnd)) return {};
  const std::size_t begin = std::min(words.find_first_not_of(' ', kAnd.size()), words.size()),
                    end = end_of_letters(words, begin);
  const std::size_t numerator = numerator_of(words.substr(begin, end - begin));
  const std::size_t next = std::min(words.find_first_not_of(" -", end), words.size()),
                    behind = end_of_letters(words, next);
  const std::string_view factor = factor_of(std::string(words.substr(next, behind - next)));
  if (numerator == 0 || !factor.starts_with(kFraction)) return {};
  const std::string_view denominator = factor.substr(kFraction.size());  // with its brace
  const bool is_proper =
      denominator.size() > 2 || numerator < static_cast<std::size_t>(denominator.front() - '0');
  if (!is_proper) return {};
  return {"\\frac{" + std::to_string(numerator) + "}{" + std::string(denominator), behind};
}

LeadingScale leading_scale(std::string_view words) {
  for (const auto& [name, latex] : kPowers) {
    if (words == name) return {std::string(latex), words.size()};
  }
  LeadingScale scale;
  const std::size_t begin = words.starts_with('-') ? 1 : 0;  // "5-million"
  for (std::size_t at = begin; at < words.size();) {
    const std::size_t end = end_of_letters(words, at);
    const bool is_whole = end == words.size() || words[end] == ' ';
    const auto word = words_of(words.substr(at, end - at));
    const std::string_view factor = is_whole && word.size() == 1 && !is_among(word.front(), kCoins)
                                        ? factor_of(word.front())
                                        : std::string_view();
    if (factor.empty()) break;
    scale.latex += " \\cdot " + std::string(factor);
    at = std::min(words.find_first_not_of(' ', end), words.size());
    scale.end = at;
  }
  return scale;
}

bool is_factor_word(std::string_view word) {
  const auto words = words_of(word);
  return words.size() == 1 && !factor_of(words.front()).empty();
}

bool changes_quantity(std::string_view text) {
  const std::vector<std::string> words = words_of(text);
  if (words.empty()) return false;
  if (is_among(words.front(), kGoOn)) return true;
  if (words.size() == 1 && is_among(words.front(), kDirections)) return true;
  if (has_root_of_number(words)) return true;
  const std::vector<std::string> whole = words_of(text, true);
  if (std::any_of(whole.begin(), whole.end(),
                  [](const std::string& word) { return is_among(word, kNumbers); }))
    return true;
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    const bool is_ordinal = word.find("teenth") != word.npos || word.find("tieth") != word.npos;
    return is_ordinal || is_among(word, kMeaningful) ||
           (!factor_of(word).empty() && !is_among(word, kAlsoThings));
  });
}

bool have_different_units(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const std::vector<Phrase> left = phrases_of(a), right = phrases_of(b);
  return !left.empty() && !right.empty() && !are_all_said(left, right) &&
         !are_all_said(right, left);
}

}  // namespace rl
