// Filters on text and single values; those on lists are in list_filters.cpp.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "rl/template/builtins.h"
#include "rl/template/failure.h"
#include "rl/template/html.h"
#include "rl/template/list_filters.h"
#include "rl/template/python_string.h"

namespace rl {
namespace {

using Arguments = CallArguments;

/// What most text filters do first: str(value).
std::string soft_text(TemplateEvaluator& evaluator, const TemplateValue& value) {
  std::string text = value.to_string(evaluator.budget());
  evaluator.charge(text.size());
  return text;
}

TemplateValue filter_tojson(TemplateEvaluator& evaluator, const TemplateValue& value,
                            const Arguments& arguments) {
  arguments.check("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = arguments.flag(0, "ensure_ascii", false);
  style.sort_keys = arguments.flag(3, "sort_keys", false);
  const TemplateValue* indent = arguments.find(1, "indent");
  if (indent != nullptr && !indent->is_none()) {
    require_defined(*indent);
    style.multi_line = true;
    if (indent->is_string()) {
      style.indent = indent->as_string();
    } else if (indent->is_int() || indent->is_bool()) {
      if (indent->as_int() > 1000) fail_limit("tojson: an indent of more than 1000");
      style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(indent->as_int(), 0)),
                          ' ');
    } else {
      fail_type("tojson: indent must be an integer or a string, not " + indent->type_name());
    }
  }
  const TemplateValue* separators = arguments.find(2, "separators");
  if (separators != nullptr && !separators->is_none()) {
    if (!separators->is_sequence() || separators->items().size() != 2)
      fail_type("tojson: separators must be a pair");
    style.item_separator = separators->items()[0].to_string(evaluator.budget());
    style.key_separator = separators->items()[1].to_string(evaluator.budget());
  }
  return to_json_text(evaluator.budget(), value, style);
}

TemplateValue filter_default(TemplateEvaluator&, const TemplateValue& value,
                             const Arguments& arguments) {
  arguments.check("default", {"default_value", "boolean"});
  const bool also_false = arguments.flag(1, "boolean", false);
  if (!value.is_undefined() && (!also_false || value.truthy())) return value;
  const TemplateValue* otherwise = arguments.find(0, "default_value");
  return otherwise == nullptr ? TemplateValue(std::string()) : *otherwise;
}

TemplateValue filter_trim(TemplateEvaluator& evaluator, const TemplateValue& value,
                          const Arguments& arguments) {
  const TemplateValue* characters = arguments.find(0, "chars");
  const std::string text = soft_text(evaluator, value);
  if (characters == nullptr || characters->is_none())
    return TemplateValue::text(strip_text(text, true, true));
  const std::string wanted = characters->to_string(evaluator.budget());
  evaluator.charge_characters(wanted.size());
  return TemplateValue::text(strip_text(text, true, true, &wanted));
}

TemplateValue filter_indent(TemplateEvaluator& evaluator, const TemplateValue& value,
                            const Arguments& arguments) {
  arguments.check("indent", {"width", "first", "blank"});
  const TemplateValue* width = arguments.find(0, "width");
  std::string indentation(4, ' ');
  if (width != nullptr && width->is_string()) {
    indentation = width->as_string();
  } else if (width != nullptr) {
    const std::int64_t columns = arguments.integer(0, "width", 4);
    if (columns > 10'000) fail_limit("indent: a width of more than 10000");
    indentation.assign(static_cast<std::size_t>(std::max<std::int64_t>(columns, 0)), ' ');
  }
  require_defined(value);
  if (!value.is_string())
    fail_type("unsupported operand type(s) for +=: '" + value.type_name() + "' and 'str'");
  const bool blank = arguments.flag(2, "blank", false);
  evaluator.charge(value.as_string().size() + line_bytes(value.as_string()));
  evaluator.charge_characters(value.as_string().size());
  const std::vector<std::string> lines = split_lines(value.as_string() + "\n", false);
  std::string out = arguments.flag(1, "first", false) ? indentation : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\n";
    if (i > 0 && (blank || !lines[i].empty())) {
      evaluator.charge(indentation.size());
      out += indentation;
    }
    out += lines[i];
  }
  evaluator.charge(out.size());
  return out;
}

TemplateValue filter_replace(TemplateEvaluator& evaluator, const TemplateValue& value,
                             const Arguments& arguments) {
  arguments.check("replace", {"old", "new", "count"});
  CallArguments method_arguments;
  method_arguments.positional = {TemplateValue(arguments.text(evaluator.budget(), 0, "old", "")),
                                 TemplateValue(arguments.text(evaluator.budget(), 1, "new", ""))};
  const TemplateValue* count = arguments.find(2, "count");
  if (count != nullptr && !count->is_none()) method_arguments.positional.push_back(*count);
  const TemplateValue text(soft_text(evaluator, value));
  return evaluator.call(find_method(evaluator, text, "replace"), method_arguments);
}

TemplateValue filter_escape(TemplateEvaluator& evaluator, const TemplateValue& value,
                            const Arguments&) {
  std::string out = html_text(soft_text(evaluator, value));
  evaluator.charge(out.size());
  return out;
}

/// A number written as text, the way int() and float() read it.
std::optional<double> parse_number(const std::string& written) {
  const std::string_view text = strip_text(written, true, true);
  double value = 0;
  const std::string_view digits = text.starts_with("+") ? text.substr(1) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return value;
}

/// An integer as int(text, base) reads it; nothing when it is none.
std::optional<TemplateValue> parse_integer(std::string_view text, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto prefixed = [text](std::string_view lower, std::string_view upper) {
    return text.starts_with(lower) || text.starts_with(upper);
  };
  const std::int64_t named = prefixed("0x", "0X")   ? 16
                             : prefixed("0o", "0O") ? 8
                             : prefixed("0b", "0B") ? 2
                                                    : 0;
  const bool marked = named != 0 && (base == 0 || base == named);
  if (marked) text.remove_prefix(2);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    // An underscore stands between digits, or behind the mark of a base.
    const bool between = (i > 0 || marked) && i + 1 < text.size() && text[i + 1] != '_';
    if (text[i] != '_') {
      digits += text[i];
    } else if (!between) {
      return std::nullopt;
    }
  }
  const auto used = static_cast<int>(marked ? named : base == 0 ? 10 : base);
  if (base == 0 && !marked && digits.size() > 1 && digits[0] == '0' &&
      digits.find_first_not_of('0') != std::string::npos)
    return std::nullopt;
  if (used == 10) {
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    return TemplateValue::integer((negative ? "-" : "") + digits);
  }
  std::int64_t whole = 0;
  if (negative) digits.insert(0, "-");
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), whole, used);
  if (error == std::errc::result_out_of_range)
    fail_python("OverflowError", "integer beyond 64 bits");
  if (error != std::errc() || end != digits.data() + digits.size() || digits.starts_with("--"))
    return std::nullopt;
  return TemplateValue(whole);
}

TemplateValue filter_center(TemplateEvaluator& evaluator, const TemplateValue& value,
                            const Arguments& arguments) {
  arguments.check("center", {"width"});
  const std::string text = soft_text(evaluator, value);
  const std::int64_t missing = arguments.integer(0, "width", 80) - count_characters(text);
  if (missing <= 0) return text;
  if (missing > 1'000'000) fail_limit("center: a width of more than a million");
  evaluator.charge(static_cast<std::size_t>(missing));
  // Python puts the odd space to the left where the width is odd too.
  const std::int64_t left = missing / 2 + (missing & (missing + count_characters(text)) & 1);
  return std::string(static_cast<std::size_t>(left), ' ') + text +
         std::string(static_cast<std::size_t>(missing - left), ' ');
}

TemplateValue filter_int(TemplateEvaluator& evaluator, const TemplateValue& value,
                         const Arguments& arguments) {
  arguments.check("int", {"default", "base"});
  const std::int64_t base = arguments.integer(1, "base", 10);
  require_defined(value);
  if (value.is_big_integer()) return value;
  const TemplateValue otherwise = arguments.find(0, "default") != nullptr
                                      ? *arguments.find(0, "default")
                                      : TemplateValue(std::int64_t{0});
  if (value.is_int() || value.is_bool()) return value.as_int();
  std::optional<double> number;
  if (value.is_float()) number = value.as_double();
  if (value.is_string()) {
    evaluator.charge_scan(value.as_string().size());
    if (std::optional<TemplateValue> whole =
            parse_integer(strip_text(value.as_string(), true, true), base))
      return *whole;
    number = parse_number(value.as_string());
  }
  if (!number || !std::isfinite(*number) || std::abs(*number) >= 9.2e18) return otherwise;
  return static_cast<std::int64_t>(*number);
}

TemplateValue filter_float(TemplateEvaluator& evaluator, const TemplateValue& value,
                           const Arguments& arguments) {
  arguments.check("float", {"default"});
  require_defined(value);
  if (value.is_number()) return value.as_double();
  if (value.is_big_integer() || value.is_string())
    evaluator.charge_scan(value.is_string() ? value.as_string().size()
                                            : value.as_big_integer().size());
  if (value.is_big_integer()) return std::strtod(value.as_big_integer().c_str(), nullptr);
  const std::optional<double> number =
      value.is_string() ? parse_number(value.as_string()) : std::nullopt;
  if (number) return *number;
  return arguments.find(0, "default") != nullptr ? *arguments.find(0, "default")
                                                 : TemplateValue(0.0);
}

TemplateValue filter_abs(TemplateEvaluator&, const TemplateValue& value, const Arguments&) {
  require_defined(value);
  if (value.is_big_integer())
    return TemplateValue::integer(
        value.as_big_integer().substr(value.as_big_integer().starts_with('-') ? 1 : 0));
  if (!value.is_number()) fail_type("bad operand type for abs(): '" + value.type_name() + "'");
  if (value.is_float()) return std::abs(value.as_double());
  if (value.as_int() == INT64_MIN) fail_python("OverflowError", "integer beyond 64 bits");
  return std::abs(value.as_int());
}

TemplateValue filter_round(TemplateEvaluator& evaluator, const TemplateValue& value,
                           const Arguments& arguments) {
  arguments.check("round", {"precision", "method"});
  require_defined(value);
  if (value.is_big_integer()) fail_python("OverflowError", "integer beyond 64 bits");
  if (!value.is_number())
    fail_type("type " + value.type_name() + " doesn't define __round__ method");
  const std::int64_t precision = arguments.integer(0, "precision", 0);
  const std::string method = arguments.text(evaluator.budget(), 1, "method", "common");
  const double scale =
      std::pow(10.0, static_cast<double>(std::clamp<std::int64_t>(precision, -300, 300)));
  const double scaled = value.as_double() * scale;
  if (method == "ceil") return std::ceil(scaled) / scale;
  if (method == "floor") return std::floor(scaled) / scale;
  if (method != "common")
    fail_python("FilterArgumentError", "method must be common, ceil or floor");
  if (!value.is_float() && precision >= 0) return value.as_int();
  if (precision < 0) return std::nearbyint(scaled) / scale;  // halves to even, as Python does
  // Of the number as it is, not of a multiple: 2.675 is a little less than it looks.
  constexpr std::int64_t kDigitsMax = 17;
  std::array<char, 400> decimal{};
  std::snprintf(decimal.data(), decimal.size(), "%.*f",
                static_cast<int>(std::min(precision, kDigitsMax)), value.as_double());
  return precision > kDigitsMax ? value.as_double() : std::strtod(decimal.data(), nullptr);
}

TemplateValue filter_format(TemplateEvaluator& evaluator, const TemplateValue& value,
                            const Arguments& arguments) {
  if (!arguments.named.empty())
    fail_unsupported(evaluator.line(), "the filter 'format' with named values");
  return format_percent(evaluator, soft_text(evaluator, value), arguments.positional);
}

TemplateValue filter_truncate(TemplateEvaluator& evaluator, const TemplateValue& value,
                              const Arguments& arguments) {
  arguments.check("truncate", {"length", "killwords", "end", "leeway"});
  const TemplateValue* given_leeway = arguments.find(3, "leeway");
  const std::int64_t length = arguments.integer(0, "length", 255);
  const std::int64_t leeway =
      given_leeway == nullptr || given_leeway->is_none() ? 5 : arguments.integer(3, "leeway", 5);
  const std::string end = arguments.text(evaluator.budget(), 2, "end", "...");
  const std::int64_t end_length = count_characters(end);
  if (length < end_length)
    fail_python("AssertionError", "expected length >= " + std::to_string(end_length) + ", got " +
                                      std::to_string(length));
  if (leeway < 0)
    fail_python("AssertionError", "expected leeway >= 0, got " + std::to_string(leeway));
  // What is short enough stays as it is, a list too; only text can be cut.
  if (!value.is_string()) {
    if (length_of(evaluator, value) <= length + leeway) return value;
    if (value.is_dict()) fail_type("unhashable type: 'slice'");
    if (arguments.flag(1, "killwords", false))
      fail_type("can only concatenate " + value.type_name() + " (not \"str\") to " +
                value.type_name());
    fail_python("AttributeError", "'" + value.type_name() + "' object has no attribute 'rsplit'");
  }
  const std::string text = soft_text(evaluator, value);
  evaluator.charge_characters(text.size());
  const auto characters = split_characters(text);
  if (static_cast<std::int64_t>(characters.size()) <= length + leeway) return text;
  const std::int64_t kept = length - end_length;
  std::string out;
  for (std::int64_t i = 0; i < kept; ++i) out += characters[static_cast<std::size_t>(i)];
  if (!arguments.flag(1, "killwords", false)) out = out.substr(0, out.rfind(' '));
  return out + end;
}

TemplateValue filter_urlencode(TemplateEvaluator& evaluator, const TemplateValue& value,
                               const Arguments&) {
  if (!value.is_string())
    fail_unsupported(evaluator.line(), "the filter 'urlencode' of " + value.type_name());
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (char c : value.as_string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  evaluator.charge(out.size());
  return out;
}

TemplateValue filter_wordcount(TemplateEvaluator& evaluator, const TemplateValue& value,
                               const Arguments&) {
  std::int64_t words = 0;
  bool in_word = false;
  const std::string text = soft_text(evaluator, value);  // the characters are views of it
  evaluator.charge_characters(text.size());
  for (std::string_view character : split_characters(text)) {
    const bool part = is_word_character(character);
    words += part && !in_word;
    in_word = part;
  }
  return words;
}

// Not str.title(): words begin after blanks, hyphens and opening brackets alone.
TemplateValue filter_title(TemplateEvaluator& evaluator, const TemplateValue& value,
                           const Arguments&) {
  std::string out;
  std::string word;
  const auto finish_word = [&] {
    if (word.empty()) return;
    const std::size_t first = character_size(word);
    out += to_upper(std::string_view(word).substr(0, first)) +
           to_lower(std::string_view(word).substr(first));
    word.clear();
  };
  const std::string text = soft_text(evaluator, value);  // the characters are views of it
  evaluator.charge_characters(text.size());
  for (std::string_view character : split_characters(text)) {
    const bool between = is_blank_character(character) ||
                         std::string_view("-({[<").find(character) != std::string_view::npos;
    if (between) finish_word();
    (between ? out : word) += character;
  }
  finish_word();
  return out;
}

template <std::string (*kMap)(std::string_view)>
TemplateValue filter_map_text(TemplateEvaluator& evaluator, const TemplateValue& value,
                              const Arguments&) {
  const std::string text = soft_text(evaluator, value);
  evaluator.charge_characters(text.size());
  return kMap(text);
}

TemplateValue filter_string(TemplateEvaluator& evaluator, const TemplateValue& value,
                            const Arguments&) {
  return soft_text(evaluator, value);
}

constexpr NamedFilter kTextFilters[] = {
    {"tojson", filter_tojson},
    {"default", filter_default},
    {"d", filter_default},
    {"trim", filter_trim},
    {"center", filter_center},
    {"indent", filter_indent},
    {"replace", filter_replace},
    {"escape", filter_escape},
    {"e", filter_escape},
    {"forceescape", filter_escape},
    {"safe", filter_string},
    {"string", filter_string},
    {"upper", filter_map_text<to_upper>},
    {"lower", filter_map_text<to_lower>},
    {"capitalize", filter_map_text<to_capitalized>},
    {"title", filter_title},
    {"int", filter_int},
    {"float", filter_float},
    {"abs", filter_abs},
    {"round", filter_round},
    {"format", filter_format},
    {"truncate", filter_truncate},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
};

}  // namespace

FilterFunction find_filter(std::string_view name) {
  for (const NamedFilter& filter : kTextFilters) {
    if (filter.name == name) return filter.function;
  }
  for (const NamedFilter& filter : list_filters()) {
    if (filter.name == name) return filter.function;
  }
  return nullptr;
}

}  // namespace rl
