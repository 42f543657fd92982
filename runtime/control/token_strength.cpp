#include "runtime/control/token_strength.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace runtime {

namespace {

// A letter of an English word has between one and two bits.
constexpr double kWordLetterBits = 2;
constexpr double kSeparatorBits = 1;
constexpr double kDigitBits = 3.3;  // of ten
// A character that follows from those before it: chance alone makes one, hardly many in a row.
constexpr double kFollowingBits = 1.5;
constexpr double kGoesOnFollowingBits = 0.25;
constexpr std::size_t kRepeatMin = 3;

/// How many characters an attacker tries who knows which kinds there are.
double alphabet_size(std::string_view token) {
  bool lower = false, upper = false, digit = false, other = false, beyond_hex = false;
  for (const unsigned char c : token) {
    lower |= std::islower(c) != 0;
    upper |= std::isupper(c) != 0;
    digit |= std::isdigit(c) != 0;
    other |= std::isalnum(c) == 0;
    beyond_hex |= std::isxdigit(c) == 0;
  }
  if (!beyond_hex) return digit && (lower || upper) ? 16 : (digit ? 10 : 6);
  return (lower ? 26.0 : 0.0) + (upper ? 26.0 : 0.0) + (digit ? 10.0 : 0.0) + (other ? 10.0 : 0.0);
}

/// Whether the character is the same as the one before, or the next in the order of characters, one
/// way or the other.
bool continues_sequence(std::string_view token, std::size_t at) {
  return at > 0 && std::abs(static_cast<unsigned char>(token[at]) -
                            static_cast<unsigned char>(token[at - 1])) <= 1;
}

/// Whether the last few characters up to this one were said before.
bool repeats(std::string_view token, std::size_t at) {
  if (at + 1 < 2 * kRepeatMin) return false;
  const std::string_view last = token.substr(at + 1 - kRepeatMin, kRepeatMin);
  return token.substr(0, at + 1 - kRepeatMin).find(last) != std::string_view::npos;
}

/// Whether the character is a letter next to another one, as in words.
bool is_in_word(std::string_view token, std::size_t at) {
  const auto is_letter = [&](std::size_t i) {
    return i < token.size() && std::isalpha(static_cast<unsigned char>(token[i])) != 0;
  };
  return is_letter(at) && (is_letter(at + 1) || (at > 0 && is_letter(at - 1)));
}

/// Whether the character is a digit next to another one, as in dates and numbers.
bool is_in_number(std::string_view token, std::size_t at) {
  const auto is_digit = [&](std::size_t i) {
    return i < token.size() && std::isdigit(static_cast<unsigned char>(token[i])) != 0;
  };
  return is_digit(at) && (is_digit(at + 1) || (at > 0 && is_digit(at - 1)));
}

/// Whether the character stands between others as it does in sentences and names.
bool is_separator(unsigned char c) { return std::isalnum(c) == 0; }

}  // namespace

double estimated_bits(std::string_view token) {
  if (token.empty()) return 0;
  const double alphabet = alphabet_size(token);
  const double full = std::log2(std::max(alphabet, 2.0));
  double bits = 0;
  bool followed = false;
  for (std::size_t at = 0; at < token.size(); ++at) {
    const bool follows = continues_sequence(token, at) || repeats(token, at);
    if (follows)
      bits += followed ? kGoesOnFollowingBits : kFollowingBits;
    else if (is_separator(static_cast<unsigned char>(token[at])))
      bits += kSeparatorBits;
    else if (alphabet != 16 && is_in_word(token, at))
      bits += std::min(full, kWordLetterBits);
    else if (alphabet != 16 && is_in_number(token, at))
      bits += std::min(full, kDigitBits);
    else
      bits += full;
    followed = follows;
  }
  return bits;
}

}  // namespace runtime
