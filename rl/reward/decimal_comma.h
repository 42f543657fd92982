// Numbers with a comma before their decimals. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rl {

/// Which commas are a decimal point: those that can be nothing else ("3{,}5", "1.234,56"), or also
/// "3,5", which may be a list of two.
enum class Commas { kPlain, kAll };

/// A number, perhaps with a unit behind it, with a point for its comma; nullopt: it has no such
/// comma. "1,234" has thousands.
std::optional<std::string> with_decimal_point(std::string_view text, Commas commas);

/// The same of every member of a list, in brackets or without: of commas that are written "{,}",
/// and of those between members that ";" separates.
std::optional<std::string> with_decimal_points_in_list(std::string_view text);

/// The same of a formula whose commas may all be decimal points: "y = 0,5x + 1,5". nullopt: one
/// of them can not, or stands in brackets, where it separates: "(1,5)".
std::optional<std::string> with_decimal_points_in_formula(std::string_view text);

}  // namespace rl
