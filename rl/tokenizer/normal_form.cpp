#include "rl/tokenizer/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "rl/tokenizer/unicode_corrections.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

namespace {

constexpr std::size_t kDecomposedMax = 32;  // the longest decomposition of one character has 18

int combining_class(char32_t c) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

std::vector<CharacterChange> decompose(std::string_view text, bool compatible) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<CharacterChange> changes;
  std::size_t pending = 0;  // behind the last character of class 0: to be put in order
  const auto put_in_order = [&] {
    std::stable_sort(changes.begin() + static_cast<std::ptrdiff_t>(pending), changes.end(),
                     [](const CharacterChange& a, const CharacterChange& b) {
                       return combining_class(a.character) < combining_class(b.character);
                     });
  };
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    std::array<utf8proc_int32_t, kDecomposedMax> parts;
    int boundary = 0;
    auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                         kDecomposedMax, options, &boundary);
    if (count <= 0 || count > static_cast<utf8proc_ssize_t>(kDecomposedMax)) {
      parts[0] = static_cast<utf8proc_int32_t>(c);
      count = 1;
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      const auto part = static_cast<char32_t>(parts[static_cast<std::size_t>(i)]);
      const bool starter = combining_class(part) == 0;
      if (starter) put_in_order();
      changes.push_back({part, i == 0 ? 0 : 1});
      if (starter) pending = changes.size();
    }
  }
  put_in_order();
  return changes;
}

std::optional<char32_t> compose_pair(char32_t first, char32_t second) {
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(first),
                              static_cast<utf8proc_int32_t>(second)};
  const auto count = utf8proc_normalize_utf32(
      pair, 2, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  if (count != 1) return std::nullopt;
  return static_cast<char32_t>(pair[0]);
}

// Joins what follows a starter with it where a joined character exists and nothing of the same
// class stands between.
std::vector<CharacterChange> compose_all(std::span<const CharacterChange> parts) {
  std::vector<CharacterChange> out;
  std::vector<CharacterChange> between;
  std::optional<CharacterChange> starter;
  int last_class = -1;  // of `between`; -1 while it is empty
  const auto flush = [&] {
    if (starter) out.push_back(*starter);
    out.insert(out.end(), between.begin(), between.end());
    between.clear();
    starter.reset();
    last_class = -1;
  };
  for (const CharacterChange& part : parts) {
    const int kind = combining_class(part.character);
    if (!starter) {
      if (kind != 0) {
        out.push_back(part);
      } else {
        starter = part;
      }
      continue;
    }
    if (last_class < kind || last_class < 0) {
      if (auto joined = compose_pair(starter->character, part.character)) {
        starter = CharacterChange{*joined, starter->change + part.change - 1};
        continue;
      }
    }
    if (kind == 0) {
      flush();
      starter = part;
    } else {
      between.push_back(part);
      last_class = kind;
    }
  }
  flush();
  return out;
}

}  // namespace

std::vector<CharacterChange> normal_form_changes(std::string_view text, bool compatible,
                                                 bool compose) {
  std::vector<CharacterChange> all;
  for (const NormalizedPart& part : parts_to_normalize(text)) {
    if (part.inert) {
      std::size_t at = 0;
      all.push_back({next_code_point(part.text, at), 0});
      continue;
    }
    std::vector<CharacterChange> changes = decompose(part.text, compatible);
    if (compose) changes = compose_all(changes);
    all.insert(all.end(), changes.begin(), changes.end());
  }
  return all;
}

std::vector<NormalizedPart> parts_to_normalize(std::string_view text) {
  std::vector<NormalizedPart> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (!is_inert(next_code_point(text, at))) continue;
    if (begin > done) parts.push_back({text.substr(done, begin - done)});
    parts.push_back({text.substr(begin, at - begin), true});
    done = at;
  }
  if (done < text.size()) parts.push_back({text.substr(done)});
  return parts;
}

}  // namespace rl
