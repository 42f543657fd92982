#include "rl/text/tokenizer_charsmap_normalizer.h"

#include <utf8proc.h>

#include <array>
#include <optional>
#include <utility>

#include "rl/text/tokenizer_json_fields.h"
#include "rl/text/tokenizer_text.h"
#include "rl/text/tokenizer_trie.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

constexpr std::string_view kWordMark = "\xe2\x96\x81";  // U+2581
constexpr std::size_t kGraphemeBytesMax = 5;            // longer ones are never looked up as a whole

class SentencePieceNormalizer final : public Normalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceNormalizerOptions options)
      : options_(std::move(options)), space_(options_.escape_whitespaces ? kWordMark : " ") {
    std::vector<std::pair<std::string_view, std::int32_t>> keys;
    for (const std::string& symbol : options_.kept) keys.emplace_back(symbol, 0);
    kept_ = ByteTrie(std::move(keys));
  }

  Status apply(std::string& text, RegexScratch&) const override {
    std::string_view rest = text;
    // Whatever becomes a space at the beginning goes.
    while (options_.remove_extra_whitespaces && !rest.empty()) {
      const CharsMap::Match match = next(rest);
      if (match.replacement != " ") break;
      rest.remove_prefix(match.length);
    }
    std::string out;
    if (!rest.empty()) {
      out.reserve(rest.size() + rest.size() / 4 + space_.size());
      if (options_.add_dummy_prefix && !options_.whitespace_as_suffix) out += space_;
      append(rest, out);
    }
    text = std::move(out);
    return {};
  }

 private:
  // What the text begins with, and what becomes of it.
  CharsMap::Match next(std::string_view text) const {
    std::size_t symbol = 0;
    kept_.prefixes(text, [&](std::size_t length, std::int32_t) { symbol = length; });
    if (symbol > 0) return {symbol, text.substr(0, symbol)};
    if (auto match = options_.charsmap.longest(text)) return *match;
    const std::size_t length = utf8_length(text[0]);
    return {length, text.substr(0, length)};
  }

  void append(std::string_view rest, std::string& out) const {
    bool after_space = options_.remove_extra_whitespaces;
    while (!rest.empty()) {
      const CharsMap::Match match = next(rest);
      std::string_view piece = match.replacement;
      while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
      for (char c : piece) {
        if (c == ' ') {
          out += space_;
        } else {
          out += c;
        }
      }
      if (!piece.empty()) after_space = options_.remove_extra_whitespaces && piece.ends_with(' ');
      rest.remove_prefix(match.length);
    }
    if (options_.remove_extra_whitespaces) {
      while (out.ends_with(space_)) out.resize(out.size() - space_.size());
    }
    if (options_.add_dummy_prefix && options_.whitespace_as_suffix) out += space_;
  }

  SentencePieceNormalizerOptions options_;
  std::string_view space_;
  ByteTrie kept_;
};

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(CharsMap charsmap) : charsmap_(std::move(charsmap)) {}

  Status apply(std::string& text, RegexScratch&) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = grapheme_length(text, at);
      const std::string_view grapheme = std::string_view(text).substr(at, length);
      at += length;
      if (auto match = length <= kGraphemeBytesMax ? charsmap_.shortest(grapheme) : std::nullopt) {
        out += match->replacement;
        continue;
      }
      for (std::size_t i = 0; i < grapheme.size();) {
        const std::string_view character = grapheme.substr(i, utf8_length(grapheme[i]));
        i += character.size();
        auto match = charsmap_.shortest(character);
        out += match ? match->replacement : character;
      }
    }
    text = std::move(out);
    return {};
  }

 private:
  // Of the extended grapheme cluster at `at`.
  static std::size_t grapheme_length(std::string_view text, std::size_t at) {
    const std::size_t begin = at;
    char32_t previous = next_code_point(text, at);
    utf8proc_int32_t state = 0;
    while (at < text.size()) {
      std::size_t end = at;
      const char32_t c = next_code_point(text, end);
      // Two printing ASCII characters are never one cluster.
      if (previous < 0x7f && c < 0x7f && previous >= 0x20 && c >= 0x20) break;
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous), static_cast<utf8proc_int32_t>(c), &state)) break;
      previous = c;
      at = end;
    }
    return at - begin;
  }

  CharsMap charsmap_;
};

std::optional<std::string> from_base64(std::string_view text) {
  std::array<signed char, 256> digits;
  digits.fill(-1);
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < kDigits.size(); ++i) digits[static_cast<unsigned char>(kDigits[i])] = static_cast<signed char>(i);
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    const int digit = digits[static_cast<unsigned char>(c)];
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

}  // namespace

std::unique_ptr<Normalizer> make_sentencepiece_normalizer(SentencePieceNormalizerOptions options) {
  return std::make_unique<SentencePieceNormalizer>(std::move(options));
}

Result<std::unique_ptr<Normalizer>> precompiled_from_json(const json& component) {
  auto text = json_string(component, "precompiled_charsmap");
  if (!text.ok()) return text.status();
  auto blob = from_base64(*text);
  if (!blob) return runtime::invalid_argument("precompiled_charsmap is not base64");
  auto charsmap = CharsMap::parse(*blob);
  if (!charsmap.ok()) return charsmap.status().with_context("precompiled_charsmap");
  return std::unique_ptr<Normalizer>(std::make_unique<Precompiled>(std::move(*charsmap)));
}

}  // namespace rl
