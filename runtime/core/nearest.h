// The names nearest to one that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace runtime {

/// Edits (a character more, less or another) between two texts.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// Of the candidates those that are near `wanted`, nearest first, at most `count`: few edits away,
/// or with a common beginning. An id is compared by as many digits as were given.
std::vector<std::string> nearest(std::string_view wanted,
                                 const std::vector<std::string>& candidates, std::size_t count = 3);

/// "; did you mean 'a', 'b'?", or nothing.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& candidates);

/// The candidates that are nearest by their beginnings, however far, nearest first: for ids, of
/// which people give the first digits.
std::vector<std::string> closest(std::string_view wanted,
                                 const std::vector<std::string>& candidates, std::size_t count = 3);

/// "; the nearest: a, b", or nothing when there are no candidates.
std::string offer_closest(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace runtime
