#define PCRE2_CODE_UNIT_WIDTH 8
#include "rl/tokenizer/regex.h"

#include <pcre2.h>

#include <algorithm>

#include "runtime/core/check.h"

namespace rl {

using runtime::Result;

namespace {

constexpr std::size_t kPatternBytesMax = 64 << 10;
constexpr std::size_t kJitStackBytesMax = 8 << 20;
constexpr std::uint32_t kMatchLimit =
    50'000'000;  // steps of one match; honest patterns need a few per character

constexpr std::string_view kSpaces =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kWords = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kWordsAlone =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";  // outside a class,
                                                                          // Latin-1's other numbers
                                                                          // count too
constexpr std::string_view kHexDigits = "0-9a-fA-F";

bool is_special(char c) {
  return std::string_view("\\^$.|?*+()[]{}-").find(c) != std::string_view::npos;
}

// Oniguruma's members of [:name:], or of its complement; empty: not supported.
std::string_view posix_class(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"alpha", R"(\p{Alphabetic})"},
      {"^alpha", R"(\P{Alphabetic})"},
      {"upper", R"(\p{Uppercase})"},
      {"^upper", R"(\P{Uppercase})"},
      {"lower", R"(\p{Lowercase})"},
      {"^lower", R"(\P{Lowercase})"},
      {"digit", R"(\p{Nd})"},
      {"^digit", R"(\P{Nd})"},
      {"cntrl", R"(\p{Cc})"},
      {"^cntrl", R"(\P{Cc})"},
      {"alnum", R"(\p{Alphabetic}\p{Nd})"},
      {"punct", R"(\p{P}\p{S})"},
      {"blank", R"(\x{9}\p{Zs})"},
      {"space", kSpaces},
      {"xdigit", kHexDigits},
      {"word", kWords}};
  for (const auto& [known, members] : kClasses) {
    if (known == name) return members;
  }
  return {};
}

// General categories and the properties that the two libraries call alike. Any other name in \p{}
// is a script. PCRE2 would extend it by characters that several scripts use (\p{Han} by ideographic
// punctuation).
bool is_script(std::string_view name) {
  static constexpr std::string_view kOthers[] = {"L",
                                                 "Ll",
                                                 "Lm",
                                                 "Lo",
                                                 "Lt",
                                                 "Lu",
                                                 "M",
                                                 "Mc",
                                                 "Me",
                                                 "Mn",
                                                 "N",
                                                 "Nd",
                                                 "Nl",
                                                 "No",
                                                 "P",
                                                 "Pc",
                                                 "Pd",
                                                 "Pe",
                                                 "Pf",
                                                 "Pi",
                                                 "Po",
                                                 "Ps",
                                                 "S",
                                                 "Sc",
                                                 "Sk",
                                                 "Sm",
                                                 "So",
                                                 "Z",
                                                 "Zl",
                                                 "Zp",
                                                 "Zs",
                                                 "C",
                                                 "Cc",
                                                 "Cf",
                                                 "Cn",
                                                 "Co",
                                                 "Cs",
                                                 "L&",
                                                 "LC",
                                                 "Any",
                                                 "Alphabetic",
                                                 "Uppercase",
                                                 "Lowercase",
                                                 "White_Space",
                                                 "Ideographic",
                                                 "Emoji",
                                                 "Extended_Pictographic",
                                                 "Hex_Digit",
                                                 "Math",
                                                 "Dash"};
  return name.find_first_of(":=") == std::string_view::npos &&
         std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers);
}

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};

}  // namespace

Result<std::string> regex_to_pcre2(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      std::string_view set = escaped == 's' || escaped == 'S'   ? kSpaces
                             : escaped == 'w' || escaped == 'W' ? (in_class ? kWords : kWordsAlone)
                             : escaped == 'h' || escaped == 'H' ? kHexDigits
                                                                : std::string_view();
      const std::size_t name_end =
          escaped == 'p' || escaped == 'P' ? pattern.find('}', i) : std::string_view::npos;
      if (name_end != std::string_view::npos && pattern.substr(i + 1).starts_with('{')) {
        std::string_view name = pattern.substr(i + 2, name_end - i - 2);
        const bool complement = name.starts_with('^');
        if (complement) name.remove_prefix(1);
        out += std::string("\\") + escaped + (complement ? "{^" : "{") +
               (is_script(name) ? "sc:" : "") + std::string(name) + "}";
        i = name_end;
      } else if (set.empty()) {
        out += c;
        out += escaped;
      } else if (escaped >= 'a') {
        out += in_class ? std::string(set) : "[" + std::string(set) + "]";
      } else if (!in_class) {
        out += "[^" + std::string(set) + "]";
      } else if (escaped == 'S') {
        out += "\\S";  // PCRE2's own, which differs in U+180E only; a negated set inside a class
                       // cannot be spelled as a list
      } else {
        return runtime::unimplemented("\\" + std::string(1, escaped) +
                                      " inside a character class is not supported");
      }
      continue;
    }
    if (in_class) {
      if (c == '[' && !(i + 1 < pattern.size() && pattern[i + 1] == ':')) {
        return runtime::unimplemented(
            "a character class inside a character class is not supported");
      }
      if (c == '&' && i + 1 < pattern.size() && pattern[i + 1] == '&') {
        return runtime::unimplemented("an intersection of character classes (&&) is not supported");
      }
      if (c == '[') {  // [:name:]
        const std::size_t end = pattern.find(":]", i);
        if (end == std::string_view::npos) return runtime::invalid_argument("[: without :]");
        const std::string_view name = pattern.substr(i + 2, end - i - 2);
        const std::string_view members = posix_class(name);
        if (members.empty())
          return runtime::unimplemented("[:" + std::string(name) + ":] is not supported");
        out += members;
        i = end + 1;
        continue;
      }
      if (c == ']') in_class = false;
      out += c;
      continue;
    }
    out += c;
    if (c == '[') {
      in_class = true;
      // A leading ] (or ^]) is a literal member.
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out += pattern[++i];
    }
  }
  return out;
}

struct Regex::Impl {
  std::unique_ptr<pcre2_code, CodeDeleter> code;
  bool jit = false;
};

struct RegexScratch::Impl {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, kJitStackBytesMax, nullptr);

  Impl() {
    CHECK(data != nullptr);
    CHECK(context != nullptr);
    pcre2_set_match_limit(context, kMatchLimit);
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Impl() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

RegexScratch::RegexScratch() : impl_(std::make_unique<Impl>()) {}
RegexScratch::RegexScratch(RegexScratch&&) noexcept = default;
RegexScratch::~RegexScratch() = default;

Regex::Regex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kPatternBytesMax)
    return runtime::invalid_argument("the regular expression is too long");
  auto translated = regex_to_pcre2(pattern);
  if (!translated.ok()) return translated.status();
  int error = 0;
  PCRE2_SIZE offset = 0;
  // MULTILINE: in Ruby's syntax ^ and $ always match at line ends.
  pcre2_code* code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated->data()), translated->size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(error, message, sizeof(message));
    return runtime::invalid_argument("regular expression " + std::string(pattern) + " at " +
                                     std::to_string(offset) + ": " +
                                     reinterpret_cast<const char*>(message));
  }
  auto impl = std::make_unique<Impl>();
  impl->code.reset(code);
  impl->jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(impl));
}

Result<Regex> Regex::literal(std::string_view text) {
  std::string pattern;
  for (char c : text) {
    if (is_special(c)) pattern += '\\';
    pattern += c;
  }
  return compile(pattern);
}

std::optional<std::pair<std::size_t, std::size_t>> Regex::find(std::string_view text,
                                                               std::size_t from,
                                                               RegexScratch& scratch,
                                                               bool& failed) const {
  const auto match = impl_->jit ? pcre2_jit_match : pcre2_match;
  const int result =
      match(impl_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
            PCRE2_NO_UTF_CHECK, scratch.impl().data, scratch.impl().context);
  failed = result < PCRE2_ERROR_NOMATCH;
  if (result < 0) return std::nullopt;
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(scratch.impl().data);
  return std::pair<std::size_t, std::size_t>(range[0], range[1]);
}

}  // namespace rl
