#include "rl/tokenizer/charsmap_normalizer.h"

#include <utf8proc.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "rl/tokenizer/json_fields.h"
#include "rl/tokenizer/trie.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

using nlohmann::json;
using runtime::Result;
using runtime::Status;

namespace {

constexpr std::size_t kGraphemeBytesMax = 5;  // longer ones are never looked up as a whole

class SentencePieceNormalizer final : public Normalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceNormalizerOptions options)
      : options_(std::move(options)), space_(options_.escape_whitespaces ? kWordMark : " ") {
    std::vector<std::pair<std::string_view, std::int32_t>> keys;
    for (const std::string& symbol : options_.kept) keys.emplace_back(symbol, 0);
    kept_ = ByteTrie(std::move(keys));
  }

  Status apply(std::string& text, RegexScratch&) const override {
    std::string out;
    out.reserve(text.size() + text.size() / 4 + space_.size());
    rewrite(
        text, [&](std::string_view piece, std::size_t, std::size_t) { out += piece; },
        [&](std::size_t bytes) { out.resize(out.size() - bytes); }, out);
    text = std::move(out);
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch&) const override {
    AlignedText out{{}, {}, text.begin};
    rewrite(
        text.text,
        [&](std::string_view piece, std::size_t begin, std::size_t end) {
          out.text += piece;
          out.origins.insert(out.origins.end(), piece.size(),
                             {text.origins[begin].begin, text.origins[end - 1].end});
        },
        [&](std::size_t bytes) {
          out.text.resize(out.text.size() - bytes);
          out.origins.resize(out.text.size());
        },
        out.text);
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

  // Calls `add(new text, from, to)` with the range of the old text that the new one stands for.
  // Calls `drop(bytes)` to take back what is at the end of `out`.
  template <class Add, class Drop>
  void rewrite(std::string_view text, Add add, Drop drop, const std::string& out) const {
    std::size_t at = 0;
    // Whatever becomes a space at the beginning goes.
    while (options_.remove_extra_whitespaces && at < text.size()) {
      const CharsMap::Match match = next(text.substr(at));
      if (match.replacement != " ") break;
      at += match.length;
    }
    if (at == text.size()) return;
    if (options_.add_dummy_prefix && !options_.whitespace_as_suffix)
      add(space_, at, at + utf8_length(text[at]));
    bool after_space = options_.remove_extra_whitespaces;
    while (at < text.size()) {
      const CharsMap::Match match = next(text.substr(at));
      const std::size_t end = at + match.length;
      std::string_view piece = match.replacement;
      while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
      if (!piece.empty()) after_space = options_.remove_extra_whitespaces && piece.ends_with(' ');
      while (!piece.empty()) {
        const std::size_t space = std::min(piece.find(' '), piece.size());
        if (space > 0) add(piece.substr(0, space), at, end);
        if (space < piece.size()) add(space_, at, end);
        piece.remove_prefix(std::min(space + 1, piece.size()));
      }
      at = end;
    }
    while (options_.remove_extra_whitespaces && std::string_view(out).ends_with(space_))
      drop(space_.size());
    if (options_.add_dummy_prefix && options_.whitespace_as_suffix)
      add(space_, text.size() - 1, text.size());
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
    rewrite(text, [&](std::string_view, std::string_view becomes) { out += becomes; });
    text = std::move(out);
    return {};
  }

  Status apply_aligned(AlignedText& text, RegexScratch&) const override {
    std::vector<CharacterChange> changes;
    rewrite(text.text, [&](std::string_view part, std::string_view becomes) {
      const int more = characters(becomes) - characters(part);
      for (std::size_t at = 0; at < becomes.size();)
        changes.push_back({next_code_point(becomes, at), 0});
      for (int i = 0; i < more; ++i)
        changes[changes.size() - 1 - static_cast<std::size_t>(i)].change = 1;
      // Characters that go count with the one before them, even if that belongs to another part.
      if (more < 0 && !changes.empty()) changes.back().change += more;
    });
    apply_changes(changes, text);
    return {};
  }

 private:
  static int characters(std::string_view text) {
    return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
  }

  // Calls `part(old, new)` for each part of the text.
  template <class Part>
  void rewrite(std::string_view text, Part part) const {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = grapheme_length(text, at);
      const std::string_view grapheme = text.substr(at, length);
      at += length;
      if (auto match = length <= kGraphemeBytesMax ? charsmap_.shortest(grapheme) : std::nullopt) {
        part(grapheme, match->replacement);
        continue;
      }
      for (std::size_t i = 0; i < grapheme.size();) {
        const std::string_view character = grapheme.substr(i, utf8_length(grapheme[i]));
        i += character.size();
        auto match = charsmap_.shortest(character);
        part(character, match ? match->replacement : character);
      }
    }
  }

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
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous),
                                           static_cast<utf8proc_int32_t>(c), &state))
        break;
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
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    digits[static_cast<unsigned char>(kDigits[i])] = static_cast<signed char>(i);
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
