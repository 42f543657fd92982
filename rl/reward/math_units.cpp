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
    "times yuan yen rupee rupees EUR GBP CNY RMB INR Hz kHz MHz GHz mol mmol joule joules newton "
    "newtons watt watts volt volts ohm ohms kW kWh MWh eV keV MeV GeV kJ kPa kcal cal kmph "
    "micrometer micrometers microgram micrograms microsecond microseconds microliter microliters "
    "microampere microamperes microvolt microvolts microfarad microfarads microcoulomb "
    "microcoulombs ";

constexpr std::string_view kSuperscripts[] = {"\u00b2", "\u00b3", "\u00b9"};

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

/// Signs of one letter, which are units next to another only: m/s.
bool is_short_unit(std::string_view word) {
  return word == "h" || word == "s" || word == "m" || word == "g" || word == "L";
}

/// "square", "sq." and the like, before the unit that they are of.
std::size_t end_of_power_word(std::string_view text, std::size_t at) {
  const std::size_t end = end_of_letters(text, at);
  const std::string_view word = text.substr(at, end - at);
  if (word != "square" && word != "cubic" && word != "sq" && word != "cu") return at;
  const std::size_t behind = end < text.size() && text[end] == '.' ? end + 1 : end;
  const std::size_t next = skip_blanks(text, behind);
  const std::string_view unit = text.substr(next, end_of_letters(text, next) - next);
  return is_unit_word(unit) || is_short_unit(unit) ? next : at;
}

/// One factor of a unit: "kg", "s^{-1}", "k\Omega".
struct UnitFactor {
  std::size_t end = 0;
  bool is_short = false;
  bool has_exponent = false;
  bool is_inverse = false;
};

/// "\Omega", "k\Omega", "M \Omega"; nullopt: there is no ohm at `at`.
std::optional<std::size_t> end_of_ohm(std::string_view text, std::size_t at) {
  constexpr std::string_view kOhm = "\\Omega";
  const bool has_prefix =
      at < text.size() && (text[at] == 'k' || text[at] == 'M' || text[at] == 'm');
  if (has_prefix) at = skip_blanks(text, at + 1);
  if (!text.substr(at).starts_with(kOhm)) return std::nullopt;
  const std::size_t end = at + kOhm.size();
  if (end < text.size() && (is_letter(text[end]) || text[end] == '_')) return std::nullopt;
  return end;
}

std::optional<UnitFactor> unit_factor_at(std::string_view text, std::size_t at) {
  if (const auto ohm = end_of_ohm(text, at)) return UnitFactor{.end = *ohm};
  const std::size_t end = end_of_letters(text, at);
  const std::string_view word = text.substr(at, end - at);
  const bool subscripted = end < text.size() && text[end] == '_';
  if (subscripted || (!is_unit_word(word) && !is_short_unit(word))) return std::nullopt;
  const std::size_t behind = end_of_unit_exponent(text, end);
  return UnitFactor{.end = behind,
                    .is_short = !is_unit_word(word),
                    .has_exponent = behind > end,
                    .is_inverse = text.substr(end, behind - end).find('-') != text.npos};
}

/// A factor with the sign before it.
struct FurtherUnit {
  UnitFactor unit;
  bool is_divisor = false;
};

/// "/s", "per hour", "\cdot m", and "m^{-3}" behind "kg".
std::optional<FurtherUnit> further_unit_at(std::string_view text, std::size_t at) {
  at = skip_blanks(text, at);
  for (const std::string_view divides : {"/", "per "}) {
    if (!text.substr(at).starts_with(divides)) continue;
    const auto unit = unit_factor_at(text, skip_blanks(text, at + divides.size()));
    return unit ? std::optional(FurtherUnit{*unit, true}) : std::nullopt;
  }
  for (const std::string_view times : {"\\cdot ", "*"}) {
    if (!text.substr(at).starts_with(times)) continue;
    const auto unit = unit_factor_at(text, skip_blanks(text, at + times.size()));
    return unit ? std::optional(FurtherUnit{*unit, false}) : std::nullopt;
  }
  const auto unit = unit_factor_at(text, at);
  if (!unit || !unit->has_exponent) return std::nullopt;
  return FurtherUnit{*unit, false};
}

/// Single letters may be variables where nothing else shows a unit.
struct PossibleUnit {
  std::size_t end = 0;
  bool is_certain = false;
};

/// The unit that begins at `at`: "sq. ft", "km/h", "miles per hour", "kg\cdot m/s^2".
/// nullopt: there is none.
std::optional<PossibleUnit> possible_unit_at(std::string_view text, std::size_t at) {
  const std::size_t begin = end_of_power_word(text, at);
  const auto first = unit_factor_at(text, begin);
  if (!first) return std::nullopt;
  bool is_certain = begin > at || !first->is_short;
  std::size_t end = first->end;
  while (const auto further = further_unit_at(text, end)) {
    is_certain |= further->is_divisor || !further->unit.is_short || further->unit.is_inverse;
    end = further->unit.end;
  }
  return PossibleUnit{end, is_certain};
}

std::optional<std::size_t> end_of_unit(std::string_view text, std::size_t at) {
  const auto unit = possible_unit_at(text, at);
  return unit && unit->is_certain ? std::optional(unit->end) : std::nullopt;
}

/// The time of day that is said at `at`, behind "8:00" or with points: "am", "p.m.".
std::optional<std::size_t> end_of_time_of_day(std::string_view text, std::size_t at,
                                              std::string_view before) {
  const std::string_view rest = text.substr(at);
  for (const std::string_view name : {"a.m.", "p.m.", "A.M.", "P.M.", "a.m", "p.m"}) {
    if (rest.starts_with(name)) return at + name.size();
  }
  before = trim(before);
  const bool is_clock = before.size() >= 4 && before[before.size() - 3] == ':' &&
                        is_digit(before[before.size() - 2]) && is_digit(before.back());
  const std::size_t end = end_of_letters(text, at);
  const std::string_view word = text.substr(at, end - at);
  const bool is_name = word == "am" || word == "pm" || word == "AM" || word == "PM";
  return is_clock && is_name ? std::optional(end) : std::nullopt;
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
  const std::size_t next = skip_blanks(text, end), behind = end_of_letters(text, next);
  const std::string_view word = text.substr(next, behind - next);
  return !continues_quantity(text, end) || is_factor_word(word) || is_unit_word(word);
}

/// Whether a whole number ends here, to which a fraction in words may be added.
bool ends_with_whole_number(std::string_view text) {
  text = trim(text);
  std::size_t begin = text.size();
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  return begin < text.size() && (begin == 0 || (text[begin - 1] != '.' && text[begin - 1] != ','));
}

}  // namespace

bool may_be_unit(std::string_view text) {
  const auto unit = possible_unit_at(text, 0);
  return unit && unit->end == text.size();
}

bool is_whole_unit(std::string_view text) {
  return !text.empty() && end_of_unit(text, 0) == text.size();
}

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
    const bool is_behind = (starts_word || text[at] == '\\') && ends_with_quantity(out, false);
    const std::size_t ends_word = starts_word ? end_of_letters(text, at) : at + 1;
    const std::string_view word = text.substr(at, ends_word - at);
    if (is_behind && is_factor_at_end(text, at, ends_word)) {
      out += leading_scale(word).latex;
      at = ends_word;
      continue;
    }
    if (is_behind && word == "and" && ends_with_whole_number(out)) {
      if (const LeadingScale fraction = leading_fraction(text.substr(at)); fraction.end > 0) {
        out = std::string(trim(out)) + fraction.latex;
        at += fraction.end;
        continue;
      }
    }
    std::optional<std::size_t> end;
    if (is_behind) end = end_of_unit(text, at);
    if (is_behind && !end) end = end_of_time_of_day(text, at, out);
    if (starts_word && !end && is_short_unit(word) && ends_with_grouped_number(out))
      end = end_of_unit_exponent(text, ends_word);
    if (end && !continues_quantity(text, *end)) {
      units.emplace_back(text.substr(at, *end - at));
      at = *end;
      continue;
    }
    out += word;
    at = ends_word;
  }
  return out;
}

}  // namespace rl
