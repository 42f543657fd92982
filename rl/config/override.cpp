#include "rl/config/override.h"

#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

constexpr int kOverrideDepthMax = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool equals_ignoring_case(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) != lower[i]) return false;
  }
  return true;
}

/// Reads DIGIT ('_'? DIGIT)* at `i`; false when there is no digit.
bool skip_digits(std::string_view text, std::size_t& i) {
  if (i >= text.size() || !is_digit(text[i])) return false;
  while (i < text.size() &&
         (is_digit(text[i]) || (text[i] == '_' && i + 1 < text.size() && is_digit(text[i + 1]))))
    ++i;
  return true;
}

enum class NumberKind { kNone, kInt, kFloat };

/// Whether the whole word is one INT or FLOAT of the grammar.
NumberKind number_kind(std::string_view word) {
  std::size_t i = 0;
  if (i < word.size() && (word[i] == '+' || word[i] == '-')) ++i;
  if (equals_ignoring_case(word.substr(i), "inf") || equals_ignoring_case(word.substr(i), "nan"))
    return NumberKind::kFloat;
  const std::size_t start = i;
  const bool whole = skip_digits(word, i);
  if (whole && word[start] == '0' && i - start > 1) return NumberKind::kNone;  // 007 is text
  if (i == word.size()) return whole ? NumberKind::kInt : NumberKind::kNone;
  bool fraction = false;
  if (word[i] == '.') {
    ++i;
    fraction = skip_digits(word, i);
    if (!whole && !fraction) return NumberKind::kNone;
  }
  if (!whole && !fraction) return NumberKind::kNone;
  if (i < word.size() && (word[i] == 'e' || word[i] == 'E')) {
    ++i;
    if (i < word.size() && (word[i] == '+' || word[i] == '-')) ++i;
    if (!skip_digits(word, i)) return NumberKind::kNone;
  }
  return i == word.size() ? NumberKind::kFloat : NumberKind::kNone;
}

std::string without_underscores(std::string_view word) {
  std::string digits;
  for (char c : word) {
    if (c != '_') digits += c;
  }
  if (!digits.empty() && digits[0] == '+') digits.erase(0, 1);
  return digits;
}

double to_double(const std::string& digits) {
  const bool negative = !digits.empty() && digits[0] == '-';
  const std::string_view body = std::string_view(digits).substr(negative ? 1 : 0);
  if (equals_ignoring_case(body, "inf")) {
    return negative ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity();
  }
  if (equals_ignoring_case(body, "nan")) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  // Only the range can fail here: the grammar was checked. Python gives inf and 0.0 likewise.
  if (error == std::errc::result_out_of_range)
    value =
        body.find("e-") == std::string_view::npos ? std::numeric_limits<double>::infinity() : 0.0;
  return negative ? -value : value;
}

/// Recursive descent over one value. Errors carry the offset into the text that the user wrote.
class ValueParser {
 public:
  explicit ValueParser(std::string_view text) : text_(text) {}

  Result<ordered_json> parse_all() {
    skip_blanks();
    if (at_end()) return ordered_json("");
    Result<ordered_json> value = element(0, /*stops=*/",");
    if (!value.ok()) return value;
    skip_blanks();
    if (at_end()) return value;
    if (named_list_ && value->is_string()) {
      Result<ordered_json> items = list(0);
      if (!items.ok()) return items;
      skip_blanks();
      if (!at_end()) return unexpected();
      ordered_json named = ordered_json::object();
      named[value->get<std::string>()] = std::move(items).value();
      return named;
    }
    if (peek() == ',') {
      return error(
          "a comma outside brackets is a sweep, which a single run cannot do. Write [a,b] for a "
          "list, or quote the text");
    }
    return unexpected();
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }
  void skip_blanks() {
    while (!at_end() && is_blank(peek())) ++at_;
  }
  Status error(std::string what) const {
    return invalid_argument("at character " + std::to_string(at_ + 1) +
                            " of the value: " + std::move(what));
  }
  Status unexpected() const {
    if (at_end()) return error("the value ends too early");
    return error(std::string("'") + peek() +
                 "' is not allowed here: quote the text, or write a backslash before it");
  }

  Result<ordered_json> element(int depth, std::string_view stops) {
    if (depth > kOverrideDepthMax)
      return error("nested deeper than " + std::to_string(kOverrideDepthMax));
    skip_blanks();
    if (at_end()) return unexpected();
    switch (peek()) {
      case '[': return list(depth);
      case '{': return dictionary(depth);
      case '\'':
      case '"': return quoted();
      default: return plain(stops);
    }
  }

  Result<ordered_json> list(int depth) {
    ++at_;
    ordered_json items = ordered_json::array();
    skip_blanks();
    if (!at_end() && peek() == ']') {
      ++at_;
      return items;
    }
    while (true) {
      Result<ordered_json> item = element(depth + 1, ",]");
      if (!item.ok()) return item;
      items.push_back(std::move(item).value());
      skip_blanks();
      if (at_end()) return error("']' is missing");
      const char c = peek();
      if (c != ',' && c != ']') return unexpected();
      ++at_;
      if (c == ']') return items;
    }
  }

  Result<ordered_json> dictionary(int depth) {
    ++at_;
    ordered_json members = ordered_json::object();
    skip_blanks();
    if (!at_end() && peek() == '}') {
      ++at_;
      return members;
    }
    while (true) {
      skip_blanks();
      if (at_end()) return error("'}' is missing");
      const bool is_quoted = peek() == '\'' || peek() == '"';
      Result<ordered_json> key = is_quoted ? quoted() : plain(":,}");
      if (!key.ok()) return key;
      skip_blanks();
      if (at_end() || peek() != ':') return error("':' is missing after the key of a dictionary");
      ++at_;
      Result<ordered_json> value = element(depth + 1, ",}");
      if (!value.ok()) return value;
      members[key->is_string() ? key->get<std::string>() : key->dump()] = std::move(value).value();
      skip_blanks();
      if (at_end()) return error("'}' is missing");
      const char c = peek();
      if (c != ',' && c != '}') return unexpected();
      ++at_;
      if (c == '}') return members;
    }
  }

  /// In quotes only the quote itself is escaped, and backslashes right before one.
  Result<ordered_json> quoted() {
    const char quote = text_[at_++];
    std::string out;
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == quote) {
        skip_blanks();
        if (!at_end() && std::string_view(",]}:").find(peek()) == std::string_view::npos) {
          return error("quotes must enclose the whole value");
        }
        return ordered_json(std::move(out));
      }
      if (c != '\\') {
        out += c;
        continue;
      }
      std::size_t backslashes = 1;
      while (!at_end() && peek() == '\\') ++at_, ++backslashes;
      if (at_end() || peek() != quote) {
        out.append(backslashes, '\\');
        continue;
      }
      out.append(backslashes / 2, '\\');
      if (backslashes % 2 == 1) out += text_[at_++];
    }
    return error(std::string("the closing ") + quote + " is missing");
  }

  /// Copies "${...}" whole, with what is nested in it.
  Status reference(std::string& out) {
    int open = 0;
    const std::size_t start = at_;
    while (!at_end()) {
      const char c = text_[at_++];
      out += c;
      if (c == '{') ++open;
      if (c == '}' && --open == 0) return Status();
    }
    at_ = start;
    return error("'}' of ${ is missing");
  }

  Result<ordered_json> plain(std::string_view stops) {
    std::string out;
    std::size_t kept = 0;  // trailing blanks are dropped, escaped ones are not
    bool literal = false;  // an escape or reference makes it text
    bool may_call = true;
    while (!at_end()) {
      const char c = peek();
      if (stops.find(c) != std::string_view::npos) break;
      if (c == '$' && at_ + 1 < text_.size() && text_[at_ + 1] == '{') {
        literal = true;
        const Status status = reference(out);
        if (!status.ok()) return status;
        kept = out.size();
        continue;
      }
      if (c == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\\()[]{}:=, \t").find(text_[at_ + 1]) != std::string_view::npos) {
        literal = true;
        out += text_[at_ + 1];
        at_ += 2;
        kept = out.size();
        continue;
      }
      if (c == '(' && may_call && !out.empty()) {
        return error("the function " + out.substr(0, kept) +
                     "(...) is not supported: quote the text if it is meant as text");
      }
      if (std::string_view("()[]{}=,'\"").find(c) != std::string_view::npos) {
        if (c == '\'' || c == '"') return error("quotes must enclose the whole value");
        named_list_ = c == '[' && may_call && !literal && !out.empty() &&
                      std::none_of(out.begin(), out.end(), is_blank);
        if (named_list_) break;
        return unexpected();
      }
      if (!is_word_letter(c) && !is_digit(c) && c != '_' && c != '-' && !is_blank(c))
        may_call = false;
      out += c;
      ++at_;
      if (!is_blank(c)) kept = out.size();
    }
    out.resize(kept);
    if (out.empty()) return unexpected();
    return literal ? ordered_json(std::move(out)) : parse_plain_scalar(out);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool named_list_ = false;  // a word right before a '[' was read
};

/// Dotted names; empty parts and Hydra's config groups are refused.
Status check_key(std::string_view key, std::string_view text) {
  const std::string quoted = "override '" + std::string(text) + "': ";
  if (key.empty()) return invalid_argument(quoted + "the key is missing");
  if (key.find_first_of("@/") != std::string_view::npos) {
    return invalid_argument(
        quoted +
        "config groups (group/name, key@package) are not supported: set the keys themselves");
  }
  if (key.front() == '.' || key.back() == '.' || key.find("..") != std::string_view::npos) {
    return invalid_argument(quoted + "the key has an empty part");
  }
  for (char c : key) {
    if (!is_word_letter(c) && !is_digit(c) &&
        std::string_view("_-.$").find(c) == std::string_view::npos) {
      return invalid_argument(quoted + "'" + std::string(1, c) + "' cannot stand in a key");
    }
  }
  return Status();
}

}  // namespace

ordered_json parse_plain_scalar(std::string_view word) {
  if (equals_ignoring_case(word, "null")) return nullptr;
  if (equals_ignoring_case(word, "true")) return true;
  if (equals_ignoring_case(word, "false")) return false;
  switch (number_kind(word)) {
    case NumberKind::kInt: {
      const std::string digits = without_underscores(word);
      std::int64_t value = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error == std::errc()) return value;
      return to_double(digits);
    }
    case NumberKind::kFloat: return to_double(without_underscores(word));
    case NumberKind::kNone: break;
  }
  return std::string(word);
}

Result<ordered_json> parse_override_value(std::string_view text) {
  return ValueParser(text).parse_all();
}

Result<Override> parse_override(std::string_view text) {
  Override result;
  std::string_view rest = text;
  if (rest.starts_with("~")) {
    result.kind = OverrideKind::kDelete;
    rest.remove_prefix(1);
  } else if (rest.starts_with("++")) {
    result.kind = OverrideKind::kForceAdd;
    rest.remove_prefix(2);
  } else if (rest.starts_with("+")) {
    result.kind = OverrideKind::kAdd;
    rest.remove_prefix(1);
  }
  const std::size_t equals = rest.find('=');
  result.key = std::string(rest.substr(0, equals));
  if (equals == std::string_view::npos && result.kind != OverrideKind::kDelete) {
    return invalid_argument("override '" + std::string(text) +
                            "': there is no '=': write key=value (or ~key to delete)");
  }
  const Status key_status = check_key(result.key, text);
  if (!key_status.ok()) return key_status;
  if (equals == std::string_view::npos) {
    result.has_value = false;
    return result;
  }
  Result<ordered_json> value = parse_override_value(rest.substr(equals + 1));
  if (!value.ok()) return value.status().with_context("override '" + std::string(text) + "'");
  result.value = std::move(value).value();
  return result;
}

}  // namespace rl
