// SentencePiece's table of replacements ("precompiled charsmap"): which strings of the input become
// which others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// Immutable. A double-array trie (Darts) of the strings to replace, and the replacements.
class CharsMap {
 public:
  /// Replaces nothing.
  CharsMap() = default;

  /// Errors: kInvalidArgument (sizes that do not fit, replacements that are not UTF-8).
  static runtime::Result<CharsMap> parse(std::string_view blob);

  struct Match {
    std::size_t length;  // of what is replaced, from the start of the text
    std::string_view replacement;
  };

  bool empty() const { return units_.empty(); }

  /// The longest string of the table that `text` begins with.
  std::optional<Match> longest(std::string_view text) const { return find(text, false); }

  /// The shortest one.
  std::optional<Match> shortest(std::string_view text) const { return find(text, true); }

 private:
  std::optional<Match> find(std::string_view text, bool first) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;  // each ends with a NUL
};

}  // namespace rl
