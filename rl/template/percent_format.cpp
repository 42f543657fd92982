// "a %s" % values, as Python formats.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rl/template/builtins.h"
#include "rl/template/failure.h"
#include "rl/template/python_string.h"

namespace rl {
namespace {

// Of a conversion's width and precision; of numbers with a fraction, the latter.
constexpr std::size_t kFormatMax = 1'000'000;
constexpr std::size_t kFractionMax = 100;
constexpr std::size_t kIntegerDigitsMax =
    4300;  // of an integer in another base; Python's own limit

constexpr std::string_view kTextLetters = "sra";
constexpr std::string_view kDecimalLetters = "diu";
constexpr std::string_view kOtherBaseLetters = "oxX";
constexpr std::string_view kFloatLetters = "eEfFgG";

/// One conversion: flags, width, precision and letter.
struct Conversion {
  bool left = false, zero = false, plus = false, space = false, alternate = false;
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char letter = 's';

  bool is_one_of(std::string_view letters) const {
    return letters.find(letter) != std::string_view::npos;
  }
};

/// Zeros that fill the width stand between `head` and `digits`.
struct NumberText {
  std::string head;  // the sign, and 0x of the alternate form
  std::string digits;
};

std::string first_characters(const std::string& text, std::size_t count) {
  std::string first;
  for (const std::string_view character : split_characters(text)) {
    if (count-- == 0) break;
    first += character;
  }
  return first;
}

void make_upper(std::string& ascii) {
  for (char& c : ascii) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// "%d" of a float.
std::int64_t truncated(double value) {
  if (std::isnan(value)) fail_python("ValueError", "cannot convert float NaN to integer");
  if (std::isinf(value)) fail_python("OverflowError", "cannot convert float infinity to integer");
  if (!(std::abs(value) < 9223372036854775808.0))
    fail_python("OverflowError", "integer beyond 64 bits");
  return static_cast<std::int64_t>(value);
}

/// Decimal digits, after a "-" perhaps, in base 8 or 16.
std::string in_base(TemplateEvaluator& evaluator, const std::string& decimal, bool octal) {
  if (decimal.size() > kIntegerDigitsMax)
    fail_limit("% format: an integer of more than 4300 digits");
  evaluator.charge_steps(static_cast<std::int64_t>(decimal.size() * decimal.size() / 200));
  constexpr int kLimbBits = 24;         // whole digits of either base
  std::vector<std::uint32_t> limbs{0};  // the lowest first
  const bool is_negative = decimal.starts_with('-');
  for (std::size_t i = is_negative ? 1 : 0; i < decimal.size(); ++i) {
    auto carry = static_cast<std::uint32_t>(decimal[i] - '0');
    for (std::uint32_t& limb : limbs) {
      limb = limb * 10 + carry;
      carry = limb >> kLimbBits;
      limb &= (1U << kLimbBits) - 1;
    }
    if (carry != 0) limbs.push_back(carry);
  }
  std::string text = is_negative ? "-" : "";
  for (std::size_t i = limbs.size(); i-- > 0;) {
    const bool is_first = i + 1 == limbs.size();
    std::array<char, 16> digits{};
    std::snprintf(digits.data(), digits.size(), octal ? "%0*o" : "%0*x",
                  is_first ? 1 : kLimbBits / (octal ? 3 : 4), limbs[i]);
    text += digits.data();
  }
  return text;
}

/// The digits of an integer, after a "-" perhaps.
std::string digits_in_base(TemplateEvaluator& evaluator, const Conversion& conversion,
                           const TemplateValue& value) {
  const bool is_decimal = conversion.is_one_of(kDecimalLetters);
  const bool is_whole = value.is_big_integer() || value.is_int() || value.is_bool();
  if (!is_whole && !(is_decimal && value.is_float()))
    fail_type(std::string("%") + conversion.letter +
              " format: " + (is_decimal ? "a real number" : "an integer") + " is required, not " +
              value.type_name());
  const std::string decimal = value.is_big_integer() ? value.repr(evaluator.budget())
                              : value.is_float()     ? std::to_string(truncated(value.as_double()))
                                                     : std::to_string(value.as_int());
  return is_decimal ? decimal : in_base(evaluator, decimal, conversion.letter == 'o');
}

NumberText integer_text(TemplateEvaluator& evaluator, const Conversion& conversion,
                        const TemplateValue& value) {
  NumberText text{"", digits_in_base(evaluator, conversion, value)};
  if (text.digits[0] == '-') {
    text.head = "-";
    text.digits.erase(0, 1);
  }
  if (conversion.precision && *conversion.precision > text.digits.size())
    text.digits.insert(0, *conversion.precision - text.digits.size(), '0');
  if (conversion.alternate && conversion.is_one_of(kOtherBaseLetters))
    text.head += conversion.letter == 'o' ? "0o" : "0x";
  if (conversion.letter == 'X') {
    make_upper(text.head);
    make_upper(text.digits);
  }
  return text;
}

double float_of(const TemplateValue& value) {
  if (value.is_number()) return value.as_double();
  if (!value.is_big_integer()) fail_type("must be real number, not " + value.type_name());
  const double number = std::strtod(value.as_big_integer().c_str(), nullptr);
  if (std::isinf(number)) fail_python("OverflowError", "int too large to convert to float");
  return number;
}

NumberText float_text(const Conversion& conversion, const TemplateValue& value) {
  const std::size_t digits = conversion.precision.value_or(6);
  if (digits > kFractionMax) fail_limit("% format: more than 100 digits of a fraction");
  double number = float_of(value);
  if (std::isnan(number)) number = std::abs(number);  // Python's has no sign
  const std::string format =
      std::string(conversion.alternate ? "%#" : "%") + ".*" + conversion.letter;
  std::array<char, 512> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format.c_str(), static_cast<int>(digits), number);
  const std::string text = buffer.data();
  return text[0] == '-' ? NumberText{"-", text.substr(1)} : NumberText{"", text};
}

/// "%c": the character, or the one with that number.
std::string character_text(const TemplateValue& value) {
  if (value.is_string()) {
    const std::string& text = value.as_string();
    if (!text.empty() && character_size(text) == text.size()) return text;
  }
  if (!value.is_int() && !value.is_bool() && !value.is_big_integer())
    fail_type("%c requires int or char");
  if (value.is_big_integer() || value.as_int() < 0 || value.as_int() > 0x10FFFF)
    fail_python("OverflowError", "%c arg not in range(0x110000)");
  const auto code_point = static_cast<std::uint32_t>(value.as_int());
  if (code_point >= 0xD800 && code_point < 0xE000)  // Python fails when it encodes the result
    fail_python("UnicodeEncodeError", "surrogates not allowed");
  std::string text;
  append_code_point(text, code_point);
  return text;
}

std::string value_text(TemplateEvaluator& evaluator, const Conversion& conversion,
                       const TemplateValue& value) {
  std::string text = conversion.letter == 's' ? value.to_string(evaluator.budget())
                                              : value.repr(evaluator.budget());
  if (conversion.letter == 'a') {
    evaluator.charge_characters(text.size());
    text = python_ascii(text);
  }
  if (conversion.precision && *conversion.precision < text.size()) {
    evaluator.charge_characters(text.size());
    text = first_characters(text, *conversion.precision);
  }
  return text;
}

/// In the conversion's width.
std::string padded(const Conversion& conversion, const std::string& text) {
  const auto size = static_cast<std::size_t>(count_characters(text));
  if (size >= conversion.width) return text;
  const std::string blanks(conversion.width - size, ' ');
  return conversion.left ? text + blanks : blanks + text;
}

std::string padded(const Conversion& conversion, NumberText text) {
  if ((conversion.plus || conversion.space) && !text.head.starts_with('-'))
    text.head.insert(0, 1, conversion.plus ? '+' : ' ');
  const std::size_t size = text.head.size() + text.digits.size();
  if (conversion.zero && !conversion.left && size < conversion.width)
    text.head.append(conversion.width - size, '0');
  return padded(conversion, text.head + text.digits);
}

std::string convert(TemplateEvaluator& evaluator, const Conversion& conversion,
                    const TemplateValue& value) {
  if (conversion.is_one_of(kTextLetters))
    return padded(conversion, value_text(evaluator, conversion, value));
  require_defined(value);
  if (conversion.letter == 'c') return padded(conversion, character_text(value));
  return padded(conversion, conversion.is_one_of(kFloatLetters)
                                ? float_text(conversion, value)
                                : integer_text(evaluator, conversion, value));
}

/// Goes through a format and its values.
class PercentFormat {
 public:
  PercentFormat(TemplateEvaluator& evaluator, const std::string& format, const ValueList& values)
      : evaluator_(evaluator), format_(format), values_(values) {}

  std::string text() {
    std::string out;
    for (; at_ < format_.size(); ++at_) {
      if (format_[at_] != '%') {
        out += format_[at_];
        continue;
      }
      ++at_;
      const Conversion conversion = read_conversion();
      if (conversion.letter == '%') {
        out += '%';
        continue;
      }
      const TemplateValue& value = next_value();
      check_letter(conversion);
      const std::string converted = convert(evaluator_, conversion, value);
      evaluator_.charge(converted.size());
      out += converted;
    }
    return out;
  }

  bool is_all_used() const { return next_ >= values_.size(); }

 private:
  /// From behind its "%" to its letter.
  Conversion read_conversion() {
    Conversion conversion;
    read_flags(conversion);
    if (has('*')) {
      const std::int64_t width = next_size();
      conversion.left = conversion.left || width < 0;
      conversion.width = static_cast<std::size_t>(std::abs(width));
    } else {
      conversion.width = read_number();
    }
    if (has('.')) {
      if (has('*'))
        conversion.precision = static_cast<std::size_t>(std::max<std::int64_t>(next_size(), 0));
      else
        conversion.precision = read_number();
    }
    // C's sizes, which say nothing.
    if (at_ < format_.size() &&
        std::string_view("hlL").find(format_[at_]) != std::string_view::npos)
      ++at_;
    if (at_ >= format_.size()) fail_python("ValueError", "incomplete format");
    conversion.letter = format_[at_];
    return conversion;
  }

  void read_flags(Conversion& conversion) {
    for (; at_ < format_.size(); ++at_) {
      switch (format_[at_]) {
        case '-': conversion.left = true; break;
        case '+': conversion.plus = true; break;
        case '0': conversion.zero = true; break;
        case ' ': conversion.space = true; break;
        case '#': conversion.alternate = true; break;
        default: return;
      }
    }
  }

  /// Whether that is next; it is passed then.
  bool has(char c) {
    if (at_ >= format_.size() || format_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// The digits that are next, none of which are 0.
  std::size_t read_number() {
    std::size_t number = 0;
    for (; at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9'; ++at_) {
      number = number * 10 + static_cast<std::size_t>(format_[at_] - '0');
      check_size(number);
    }
    return number;
  }

  /// A width or precision that is among the values.
  std::int64_t next_size() {
    const TemplateValue& value = next_value();
    if (value.is_big_integer()) check_size(kFormatMax + 1);
    if (!value.is_int() && !value.is_bool()) fail_type("* wants int");
    const std::int64_t size = value.as_int();
    check_size(size < 0 ? 0 - static_cast<std::uint64_t>(size) : static_cast<std::uint64_t>(size));
    return size;
  }

  static void check_size(std::uint64_t size) {
    if (size > kFormatMax) fail_limit("% format: a width or precision of more than a million");
  }

  const TemplateValue& next_value() {
    if (is_all_used()) fail_type("not enough arguments for format string");
    return values_[next_++];
  }

  void check_letter(const Conversion& conversion) const {
    if (conversion.letter == 'c' || conversion.is_one_of(kTextLetters) ||
        conversion.is_one_of(kDecimalLetters) || conversion.is_one_of(kOtherBaseLetters) ||
        conversion.is_one_of(kFloatLetters))
      return;
    const std::string_view rest = std::string_view(format_).substr(at_);
    const std::uint32_t code_point = decode_character(rest.substr(0, character_size(rest)));
    std::array<char, 32> letter{};
    std::snprintf(letter.data(), letter.size(), "'%c' (0x%x)",
                  code_point >= 31 && code_point < 126 ? conversion.letter : '?', code_point);
    fail_python("ValueError", std::string("unsupported format character ") + letter.data() +
                                  " at index " +
                                  std::to_string(count_characters(format_.substr(0, at_))));
  }

  TemplateEvaluator& evaluator_;
  const std::string& format_;
  const ValueList& values_;
  std::size_t at_ = 0;    // in the format
  std::size_t next_ = 0;  // of the values
};

}  // namespace

std::string format_percent(TemplateEvaluator& evaluator, const std::string& format,
                           const ValueList& values, bool all_used) {
  evaluator.charge(format.size());
  evaluator.charge_scan(format.size());
  PercentFormat percent_format(evaluator, format, values);
  std::string text = percent_format.text();
  if (all_used && !percent_format.is_all_used())
    fail_type("not all arguments converted during string formatting");
  return text;
}

}  // namespace rl
