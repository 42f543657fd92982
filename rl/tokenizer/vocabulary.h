// Vocabulary: tokens by id and ids by token. Invariant: a token is there once, an id names at most
// one token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// A hash of short strings: fast, good enough for our tables and caches, the same on every run.
std::uint64_t hash_token(std::string_view token);

/// Immutable. Lookups are one probe or two, without allocation.
class Vocabulary {
 public:
  Vocabulary() = default;

  /// Ids may have gaps, but lie close to the number of tokens, so that memory is in proportion to
  /// what was given. Of a token that occurs twice the last id counts. Errors name the token:
  /// kInvalidArgument (negative, far too large or repeated id).
  static runtime::Result<Vocabulary> make(
      std::span<const std::pair<std::string_view, std::int64_t>> tokens);

  std::optional<std::int32_t> find(std::string_view token) const;

  /// Empty for an id that names no token.
  std::string_view token(std::int32_t id) const;

  /// One more than the largest id.
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }

 private:
  struct Entry {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    bool used = false;
  };
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = -1;
  };

  void insert(std::int32_t id);

  std::string text_;            // all tokens, one after the other
  std::vector<Entry> entries_;  // by id
  std::vector<Slot> slots_;     // open addressing, a power of two
};

}  // namespace rl
