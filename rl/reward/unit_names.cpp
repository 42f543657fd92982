#include "rl/reward/unit_names.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rl {
namespace {

// By their signs, their other names between blanks.
constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
    {"nm", " nanometer nanometre "},
    {"um", " micrometer micrometre micron "},
    {"mm", " millimeter millimetre "},
    {"cm", " centimeter centimetre "},
    {"dm", " decimeter decimetre "},
    {"m", " meter metre "},
    {"km", " kilometer kilometre "},
    {"inch", " "},
    {"ft", " foot feet "},
    {"yd", " yard "},
    {"mile", " mi "},
    {"acre", " "},
    {"hectare", " "},
    {"ml", " milliliter millilitre "},
    {"l", " liter litre "},
    {"gallon", " "},
    {"quart", " "},
    {"pint", " "},
    {"mg", " milligram "},
    {"g", " gm gram "},
    {"kg", " kilogram "},
    {"ton", " tonne "},
    {"ms", " millisecond "},
    {"s", " sec second "},
    {"min", " minute "},
    {"h", " hr hour "},
    {"day", " "},
    {"week", " "},
    {"month", " "},
    {"year", " "},
    {"deg", " degree "},
    {"rad", " radian "},
    {"dollar", " usd "},
    {"cent", " "},
    {"euro", " eur "},
    {"yuan", " cny rmb "},
    {"yen", " "},
    {"rupee", " inr "},
    {"n", " newton "},
    {"j", " joule "},
    {"kj", " kilojoule "},
    {"w", " watt "},
    {"kw", " kilowatt "},
    {"v", " volt "},
    {"km h", " kph kmh kmph "},
    {"mile h", " mph "}};

}  // namespace

std::string_view unit_sign(std::string_view word) {
  if (word.empty() || word.find(' ') != word.npos) return {};
  const auto* found = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& unit) {
    const auto& [sign, names] = unit;
    const std::size_t at = names.find(word);
    return sign == word ||
           (at != names.npos && at > 0 && names[at - 1] == ' ' && names[at + word.size()] == ' ');
  });
  return found == std::end(kUnits) ? std::string_view() : found->first;
}

}  // namespace rl
