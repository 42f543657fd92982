#include "rl/reward/math_units.h"

#include <algorithm>
#include <optional>

#include "rl/reward/characters.h"
#include "rl/reward/number_text.h"
#include "rl/reward/quantity_words.h"

namespace rl {
namespace {

// Between blanks. verl's DAPO scorer drops the nouns among them.
constexpr std::string_view kUnitWords =
    " mm cm dm km nm in inch inches ft foot feet yd yard yards mi mile miles meter meters metre "
    "metres centimeter centimeters centimetre centimetres millimeter millimeters kilometer "
    "kilometers kilometre kilometres acre acres hectare hectares ml mL liter liters litre litres "
    "milliliter milliliters gallon gallons quart quarts pint pints cup cups mg gm kg lb lbs oz "
    "gram "
    "grams kilogram kilograms pound pounds ounce ounces ton tons tonne tonnes ms sec secs second "
    "seconds min mins minute minutes hr hrs hour hours day days week weeks month months year years "
    "mph kph kmh degree degrees deg radian radians rad rads percent percentage pct dollar dollars "
    "cent cents USD euro euros unit units square squares cubic point points integer integers digit "
    "digits way ways meal meals edge edges student students multiple multiples people person "
    "persons "
    "times yuan Hz kHz mol joule joules newton newtons watt watts volt volts ";

constexpr std::string_view kSuperscripts[] = {"\u00b2", "\u00b3", "\u00b9"};

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

std::size_t end_of_word(std::string_view text, std::size_t at) {
  while (at < text.size() && is_letter(text[at])) ++at;
  return at;
}

/// "square", "sq." and the like, before the unit that they are of.
std::size_t end_of_power_word(std::string_view text, std::size_t at) {
  const std::size_t end = end_of_word(text, at);
  const std::string_view word = text.substr(at, end - at);
  if (word != "square" && word != "cubic" && word != "sq" && word != "cu") return at;
  const std::size_t behind = end < text.size() && text[end] == '.' ? end + 1 : end;
  const std::size_t next = skip_blanks(text, behind);
  return is_unit_word(text.substr(next, end_of_word(text, next) - next)) ? next : at;
}

/// Signs of one letter, which are units beside another alone: m/s.
bool is_short_unit(std::string_view word) {
  return word == "h" || word == "s" || word == "m" || word == "g" || word == "L";
}

/// Where the unit behind "/" or "per" at `at` ends; nullopt: there is none.
std::optional<std::size_t> end_of_divisor(std::string_view text, std::size_t at) {
  at = skip_blanks(text, at);
  if (text.substr(at).starts_with("/"))
    at = skip_blanks(text, at + 1);
  else if (text.substr(at).starts_with("per "))
    at = skip_blanks(text, at + 4);
  else
    return std::nullopt;
  const std::size_t end = end_of_word(text, at);
  const std::string_view word = text.substr(at, end - at);
  if (!is_short_unit(word) && !is_unit_word(word)) return std::nullopt;
  return end_of_unit_exponent(text, end);
}

/// Where the unit that begins at `at` ends: "sq. ft", "km/h", "miles per hour", "m/s^2". nullopt:
/// there is none.
std::optional<std::size_t> end_of_unit(std::string_view text, std::size_t at) {
  at = end_of_power_word(text, at);
  const std::size_t end = end_of_word(text, at);
  const std::string_view word = text.substr(at, end - at);
  const bool subscripted = end < text.size() && text[end] == '_';
  if (subscripted || (!is_unit_word(word) && !is_short_unit(word))) return std::nullopt;
  const std::size_t behind = end_of_unit_exponent(text, end);
  const auto divisor = end_of_divisor(text, behind);
  if (!is_unit_word(word)) return divisor;
  return divisor.value_or(behind);
}

/// "1 500" and "1,500", which is no factor of a variable.
bool ends_with_grouped_number(std::string_view text) {
  text = trim(text);
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[text.size() - 1 - digits])) ++digits;
  if (digits != 3 || text.size() < 5) return false;
  const char separator = text[text.size() - 4];
  return (separator == ' ' || separator == ',') && is_digit(text[text.size() - 5]);
}

/// What may follow a unit: nothing, or what begins no quantity.
bool continues_quantity(std::string_view text, std::size_t at) {
  at = skip_blanks(text, at);
  if (at == text.size()) return false;
  const char c = text[at];
  return is_digit(c) || is_letter(c) || c == '(' || c == '^' || c == '_' ||
         (c == '.' && at + 1 < text.size() && is_digit(text[at + 1]));
}

/// "million" behind which nothing is, or a unit, or a further factor.
bool is_factor_at_end(std::string_view text, std::size_t at, std::size_t end) {
  if (!is_factor_word(text.substr(at, end - at))) return false;
  const std::size_t next = skip_blanks(text, end), behind = end_of_word(text, next);
  const std::string_view word = text.substr(next, behind - next);
  return !continues_quantity(text, end) || is_factor_word(word) || is_unit_word(word);
}

}  // namespace

bool is_unit_word(std::string_view word) {
  return !word.empty() && word.find(' ') == word.npos &&
         kUnitWords.find(" " + std::string(word) + " ") != kUnitWords.npos;
}

std::size_t end_of_unit_exponent(std::string_view text, std::size_t at) {
  const std::size_t begin = skip_blanks(text, at);
  for (const std::string_view superscript : kSuperscripts) {
    if (text.substr(begin).starts_with(superscript)) return begin + superscript.size();
  }
  if (begin >= text.size() || text[begin] != '^') return at;
  std::size_t end = skip_blanks(text, begin + 1);
  const bool braced = end < text.size() && text[end] == '{';
  if (braced) end = skip_blanks(text, end + 1);
  if (end < text.size() && text[end] == '-') ++end;
  if (end >= text.size() || !is_digit(text[end])) return at;
  ++end;
  if (!braced) return end;
  end = skip_blanks(text, end);
  return end < text.size() && text[end] == '}' ? end + 1 : at;
}

bool ends_with_quantity(std::string_view text, bool symbols) {
  text = trim(text);
  if (text.empty()) return false;
  const char last = text.back();
  if (is_digit(last) || last == '}' || last == ')' || last == ']' || last == '!') return true;
  if (last == '.') return text.size() > 1 && is_digit(text[text.size() - 2]);
  if (!is_letter(last)) return false;
  std::size_t begin = text.size();
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  const bool is_command = begin > 0 && text[begin - 1] == '\\';
  if (is_command) return text.substr(begin) == "pi" || symbols;
  return symbols && text.size() - begin == 1;
}

std::string without_unit_words(std::string_view text, std::vector<std::string>& units) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool starts_word =
        is_letter(text[at]) &&
        (at == 0 || (!is_letter(text[at - 1]) && text[at - 1] != '\\' && text[at - 1] != '_'));
    const std::size_t ends_word = starts_word ? end_of_word(text, at) : at + 1;
    std::optional<std::size_t> end =
        starts_word && ends_with_quantity(out, false) ? end_of_unit(text, at) : std::nullopt;
    if (starts_word && !end && is_short_unit(text.substr(at, ends_word - at)) &&
        ends_with_grouped_number(out))
      end = end_of_unit_exponent(text, ends_word);
    if (starts_word && ends_with_quantity(out, false) && is_factor_at_end(text, at, ends_word)) {
      out += leading_scale(text.substr(at, ends_word - at)).latex;
      at = ends_word;
      continue;
    }
    if (end && !continues_quantity(text, *end)) {
      units.emplace_back(text.substr(at, *end - at));
      at = *end;
      continue;
    }
    out += text.substr(at, ends_word - at);
    at = ends_word;
  }
  return out;
}

}  // namespace rl
