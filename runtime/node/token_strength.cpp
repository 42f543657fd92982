#include "runtime/node/token_strength.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace runtime {

namespace {

// A letter of an English word has between one and two bits.
constexpr double kWordLetterBits = 1.5;
constexpr std::size_t kWordLettersMin = 4;
// A character that follows from those before it.
constexpr double kFollowingBits = 0.5;
constexpr std::size_t kRepeatMin = 3;

/// How many characters somebody tries who knows which kinds there are.
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

/// The length of the run of letters around a place; capitals only where it begins.
std::size_t word_length(std::string_view token, std::size_t at) {
  if (std::isalpha(static_cast<unsigned char>(token[at])) == 0) return 0;
  const auto continues = [&](std::size_t i) {
    const auto c = static_cast<unsigned char>(token[i]);
    const auto before = static_cast<unsigned char>(token[i - 1]);
    return std::isalpha(before) != 0 &&
           (std::islower(c) != 0 || (std::isupper(c) != 0 && std::isupper(before) != 0));
  };
  std::size_t begin = at, end = at + 1;
  while (begin > 0 && continues(begin)) --begin;
  while (end < token.size() && std::isalpha(static_cast<unsigned char>(token[end])) != 0 &&
         continues(end))
    ++end;
  return end - begin;
}

}  // namespace

double estimated_bits(std::string_view token) {
  if (token.empty()) return 0;
  const double alphabet = alphabet_size(token);
  const double full = std::log2(std::max(alphabet, 2.0));
  double bits = 0;
  for (std::size_t at = 0; at < token.size(); ++at) {
    if (continues_sequence(token, at) || repeats(token, at))
      bits += kFollowingBits;
    else if (alphabet != 16 && word_length(token, at) >= kWordLettersMin)
      bits += std::min(full, kWordLetterBits);
    else
      bits += full;
  }
  return bits;
}

}  // namespace runtime
