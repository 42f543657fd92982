#include "rl/template/lexer.h"

#include <cctype>
#include <charconv>

#include <algorithm>

#include "rl/template/failure.h"
#include "rl/template/python_string.h"

namespace rl {
namespace {

constexpr std::size_t kSourceBytesMax = 1 << 20;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// All line ends become "\n", and one at the very end is dropped, as Jinja2 does by default.
std::string normalise_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<TemplateToken> run() {
    while (at_ < source_.size()) text_and_tag();
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(at_); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance(std::size_t count) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + count),
                                         '\n'));
    at_ += count;
    if (count > 0) line_starting_ = source_[at_ - 1] == '\n';
  }

  /// Text up to the next tag with what the tag's sign takes away from it, then the tag.
  void text_and_tag() {
    std::size_t tag = at_;
    while (tag + 1 < source_.size() &&
           !(source_[tag] == '{' &&
             (source_[tag + 1] == '{' || source_[tag + 1] == '%' || source_[tag + 1] == '#')))
      ++tag;
    if (tag + 1 >= source_.size()) {
      push(TokenKind::kText, std::string(rest()));
      advance(rest().size());
      return;
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    std::string text =
        strip_before_tag(std::string(source_.substr(at_, tag - at_)), sign, kind != '{');
    if (!text.empty()) push(TokenKind::kText, std::move(text));
    advance(tag - at_);
    const std::size_t open = sign == '-' || sign == '+' ? 3 : 2;
    if (kind == '#') return comment(open);
    if (kind == '%' && raw_block(open)) return;
    push(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin, "");
    advance(open);
    expression(kind == '{');
  }

  /// "-" takes all blanks before the tag; lstrip_blocks those between the line's start and a block
  /// or comment, unless "+" keeps them.
  std::string strip_before_tag(std::string text, char sign, bool is_block) const {
    if (sign == '-') {
      while (!text.empty() && is_space(text.back())) text.pop_back();
      return text;
    }
    if (sign == '+' || !is_block) return text;
    const std::size_t line_start = text.rfind('\n') + 1;  // npos + 1 is 0
    if (line_start == 0 && !line_starting_) return text;
    if (std::all_of(text.begin() + static_cast<std::ptrdiff_t>(line_start), text.end(), is_space))
      text.resize(line_start);
    return text;
  }

  /// After the end of a block or comment: "-" takes all blanks, trim_blocks takes one newline
  /// unless "+" keeps it.
  void close_block(char sign, std::size_t width) {
    advance(width);
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && peek() == '\n') {
      advance(1);
    }
  }

  void skip_space() {
    std::size_t count = 0;
    while (is_space(peek(count)) && at_ + count < source_.size()) ++count;
    advance(count);
  }

  void comment(std::size_t open) {
    const std::size_t end = source_.find("#}", at_ + open);
    if (end == std::string_view::npos) fail_syntax(line_, "the end of the comment is missing");
    const char sign = end > at_ + open ? source_[end - 1] : '\0';
    close_block(sign, end + 2 - at_);
  }

  /// "{% raw %} ... {% endraw %}" is one text; false when this block is another one.
  bool raw_block(std::size_t open) {
    std::size_t i = at_ + open;
    while (i < source_.size() && is_space(source_[i])) ++i;
    if (!source_.substr(i).starts_with("raw")) return false;
    i += 3;
    while (i < source_.size() && is_space(source_[i])) ++i;
    const bool strips = source_.substr(i).starts_with("-%}");
    if (!strips && !source_.substr(i).starts_with("%}")) return false;
    const int first_line = line_;
    advance(i + (strips ? 3 : 2) - at_);
    if (strips) skip_space();
    for (std::size_t end = source_.find("{%", at_); end != std::string_view::npos;
         end = source_.find("{%", end + 2)) {
      std::size_t k = end + 2;
      const char sign =
          k < source_.size() && (source_[k] == '-' || source_[k] == '+') ? source_[k++] : '\0';
      while (k < source_.size() && is_space(source_[k])) ++k;
      if (!source_.substr(k).starts_with("endraw")) continue;
      k += 6;
      while (k < source_.size() && is_space(source_[k])) ++k;
      const char end_sign =
          k < source_.size() && (source_[k] == '-' || source_[k] == '+') ? source_[k++] : '\0';
      if (!source_.substr(k).starts_with("%}")) continue;
      push(TokenKind::kText,
           strip_before_tag(std::string(source_.substr(at_, end - at_)), sign, true));
      close_block(end_sign, k + 2 - at_);
      return true;
    }
    fail_syntax(first_line, "the end of the raw block is missing");
  }

  /// Words until the tag ends. Inside brackets "}}" belongs to the expression: {{ {"a": {}} }}.
  void expression(bool is_variable) {
    const int first_line = line_;
    std::string open_brackets;
    while (true) {
      skip_space();
      if (at_ >= source_.size())
        fail_syntax(first_line, is_variable ? "'}}' is missing" : "'%}' is missing");
      if (open_brackets.empty() && tag_end(is_variable)) return;
      const char c = peek();
      if (is_name_start(c)) {
        name();
      } else if (is_digit(c)) {
        number();
      } else if (c == '\'' || c == '"') {
        string();
      } else {
        symbol(open_brackets);
      }
    }
  }

  bool tag_end(bool is_variable) {
    const char sign = peek() == '-' || (peek() == '+' && !is_variable) ? peek() : '\0';
    const std::size_t signs = sign == '\0' ? 0 : 1;
    if (!rest().substr(signs).starts_with(is_variable ? "}}" : "%}")) return false;
    push(is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, "");
    if (!is_variable) {
      close_block(sign, signs + 2);
    } else {
      advance(signs + 2);
      if (sign == '-') skip_space();
    }
    return true;
  }

  void name() {
    std::size_t count = 1;
    while (is_name_start(peek(count)) || is_digit(peek(count))) ++count;
    push(TokenKind::kName, std::string(rest().substr(0, count)));
    advance(count);
  }

  std::size_t digits(std::size_t from) const {
    std::size_t i = from;
    while (is_digit(peek(i)) || (peek(i) == '_' && i > from && is_digit(peek(i + 1)))) ++i;
    return i;
  }

  void number() {
    if (peek() == '0' && std::string_view("xXbBoO").find(peek(1)) != std::string_view::npos &&
        peek(1) != '\0') {
      return number_in_base(peek(1) == 'x' || peek(1) == 'X'   ? 16
                            : peek(1) == 'o' || peek(1) == 'O' ? 8
                                                               : 2);
    }
    std::size_t count = digits(0);
    bool is_float = false;
    if (peek(count) == '.' && is_digit(peek(count + 1))) {
      is_float = true;
      count = digits(count + 1);
    }
    if (peek(count) == 'e' || peek(count) == 'E') {
      const std::size_t sign = peek(count + 1) == '+' || peek(count + 1) == '-' ? 1 : 0;
      if (is_digit(peek(count + 1 + sign))) {
        is_float = true;
        count = digits(count + 1 + sign);
      }
    }
    std::string text(rest().substr(0, count));
    std::erase(text, '_');
    push(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(text));
    advance(count);
  }

  // 0x1f, 0o17, 0b11: a token in base ten.
  void number_in_base(int base) {
    std::size_t count = 2;
    std::string digits;
    for (; std::isxdigit(static_cast<unsigned char>(peek(count))) != 0 ||
           (peek(count) == '_' && count > 1);
         ++count) {
      if (peek(count) != '_') digits += peek(count);
    }
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
      fail_unsupported(line_, "the number " + std::string(rest().substr(0, count)));
    push(TokenKind::kInteger, std::to_string(value));
    advance(count);
  }

  void string() {
    const char quote = peek();
    std::size_t count = 1;
    while (peek(count) != quote) {
      if (at_ + count >= source_.size()) fail_syntax(line_, "the end of a string is missing");
      count += peek(count) == '\\' ? 2 : 1;
    }
    push(TokenKind::kString, unescape(rest().substr(1, count - 1)));
    advance(count + 1);
  }

  /// Python's escapes; an unknown one stays as it is written.
  std::string unescape(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 >= text.size()) {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      constexpr std::string_view kFrom = "nrtabfv\\'\"", kTo = "\n\r\t\a\b\f\v\\'\"";
      if (const std::size_t known = kFrom.find(c); known != std::string_view::npos) {
        out += kTo[known];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        i += code_point(text.substr(i + 1), c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
      } else if (c >= '0' && c <= '7') {
        std::uint32_t value = 0;
        std::size_t used = 0;
        while (used < 3 && i + used < text.size() && text[i + used] >= '0' && text[i + used] <= '7')
          value = value * 8 + static_cast<std::uint32_t>(text[i + used++] - '0');
        append_code_point(out, value);
        i += used - 1;
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  std::size_t code_point(std::string_view text, std::size_t width, std::string& out) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const char c = i < text.size() ? text[i] : '\0';
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail_syntax(line_, "a string has a truncated escape");
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    append_code_point(out, value);
    return width;
  }

  void symbol(std::string& open_brackets) {
    constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", "<=", ">="};
    for (std::string_view two : kDouble) {
      if (!rest().starts_with(two)) continue;
      push(TokenKind::kOperator, std::string(two));
      advance(2);
      return;
    }
    const char c = peek();
    if (std::string_view("+-*/%~[](){}<>=.:|,;").find(c) == std::string_view::npos)
      fail_syntax(line_, std::string("unexpected character '") + c + "'");
    if (c == '(' || c == '[' || c == '{') open_brackets += c;
    if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_brackets.empty() || open_brackets.back() != open)
        fail_syntax(line_, std::string("unexpected '") + c + "'");
      open_brackets.pop_back();
    }
    push(TokenKind::kOperator, std::string(1, c));
    advance(1);
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last thing read ended a line
  std::vector<TemplateToken> tokens_;
};

}  // namespace

std::vector<TemplateToken> lex_template(std::string_view source) {
  if (source.size() > kSourceBytesMax) fail_limit("a template of more than 1 MiB");
  const std::string normalised = normalise_newlines(source);
  return Lexer(normalised).run();
}

}  // namespace rl
