#include "rl/reward/number_text.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "rl/reward/characters.h"

namespace rl {
namespace {

/// The power of ten at `at`, behind a number: "e-05". Empty when there is none.
std::string_view exponent_at(std::string_view text, std::size_t at) {
  if (at >= text.size() || (text[at] != 'e' && text[at] != 'E')) return {};
  std::size_t end = at + 1;
  if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
  const std::size_t digits = end;
  while (end < text.size() && is_digit(text[end])) ++end;
  const bool of_word = end < text.size() && std::isalpha(static_cast<unsigned char>(text[end]));
  return end == digits || of_word ? std::string_view() : text.substr(at, end - at);
}

/// The number written at `start` (at a sign, digit or point), as digits without commas; `end` is
/// behind it. Empty when there is none.
std::string number_at(std::string_view text, std::size_t start, std::size_t& end) {
  std::size_t i = start;
  std::string out;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) {
    if (text[i] == '-') out = "-";
    ++i;
  }
  if (i < text.size() && text[i] == '$') ++i;
  const std::size_t digits_from = out.size();
  while (i < text.size()) {
    const bool groups = text[i] == ',' && out.size() > digits_from && i + 3 < text.size() &&
                        is_digit(text[i + 1]) && is_digit(text[i + 2]) && is_digit(text[i + 3]) &&
                        (i + 4 >= text.size() || !is_digit(text[i + 4]));
    if (is_digit(text[i])) {
      out += text[i];
    } else if (!groups) {
      break;
    }
    ++i;
  }
  if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) {
    out += out.size() == digits_from ? "0." : ".";
    for (++i; i < text.size() && is_digit(text[i]); ++i) out += text[i];
  }
  end = i;
  if (out.size() == digits_from) return {};
  const std::string_view exponent = exponent_at(text, i);
  end += exponent.size();
  return out.append(exponent);
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string with_plain_minus(std::string_view text) {
  // Hyphens and dashes of U+2010 to U+2015, the minus sign, and the small and the wide form.
  static constexpr std::string_view kSigns[] = {"\u2010", "\u2011", "\u2012", "\u2013", "\u2014",
                                                "\u2015", "\u2212", "\ufe58", "\ufe63", "\uff0d"};
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view character = text.substr(i, 3);
    const bool is_minus =
        std::find(std::begin(kSigns), std::end(kSigns), character) != std::end(kSigns);
    out += is_minus ? '-' : text[i];
    i += is_minus ? character.size() : 1;
  }
  return out;
}

std::string last_number(std::string_view written) {
  const std::string text = with_plain_minus(written);
  std::string last;
  for (std::size_t i = 0; i < text.size();) {
    const bool signed_number = text[i] == '-' && i + 1 < text.size() &&
                               (is_digit(text[i + 1]) || text[i + 1] == '$' || text[i + 1] == '.');
    // In "12-5" and "a-5" the dash joins; only a free-standing one is a sign.
    const bool joins =
        signed_number && i > 0 &&
        (is_digit(text[i - 1]) || std::isalpha(static_cast<unsigned char>(text[i - 1])));
    if (!is_digit(text[i]) && text[i] != '.' && (!signed_number || joins)) {
      ++i;
      continue;
    }
    std::size_t end = i;
    std::string found = number_at(text, i, end);
    if (!found.empty()) last = std::move(found);
    i = std::max(end, i + 1);
  }
  return last;
}

std::string leading_number(std::string_view written) {
  const std::string plain = with_plain_minus(written);
  std::string_view text = trim(plain);
  if (text.starts_with("$")) text.remove_prefix(1);
  std::size_t end = 0;
  return number_at(text, 0, end);
}

std::optional<WrittenNumber> number_of_truth(std::string_view written) {
  const std::string plain = with_plain_minus(written);
  std::string_view text = trim(plain);
  if (const std::size_t mark = text.rfind("####"); mark != std::string_view::npos)
    text = trim(text.substr(mark + 4));
  if (text.starts_with("$")) text.remove_prefix(1);
  std::size_t end = 0;
  const std::string digits = number_at(text, 0, end);
  std::string_view rest = trim(text.substr(end));
  if (rest == "%" || rest == ".") rest = {};
  if (!rest.empty()) return std::nullopt;
  return WrittenNumber::parse(digits);
}

}  // namespace rl
