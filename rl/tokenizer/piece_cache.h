// PieceCache: the ids of short pieces seen before. Words repeat so much that most pieces of a text
// come from here.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "rl/tokenizer/vocabulary.h"

namespace rl {

/// Direct-mapped: a piece has one slot, and a newcomer takes it. A slot is one cache line, so a hit
/// touches one. Not thread-safe. Invariant: a slot of length 0 is empty.
class PieceCache {
 public:
  PieceCache() : slots_(kSlots) {}

  /// Appends the ids of `piece` when it is known.
  bool find(std::string_view piece, std::vector<std::int32_t>& ids) const {
    if (piece.size() > kPieceBytesMax) return false;
    const Slot& slot = slots_[hash_token(piece) & (kSlots - 1)];
    if (slot.length != piece.size() || std::memcmp(slot.piece, piece.data(), piece.size()) != 0)
      return false;
    ids.insert(ids.end(), slot.ids, slot.ids + slot.id_count);
    return true;
  }

  /// Remembers a piece unless it is too long, or has too many ids, for a slot.
  void insert(std::string_view piece, std::span<const std::int32_t> ids) {
    if (piece.size() > kPieceBytesMax || ids.size() > kIdsMax) return;
    Slot& slot = slots_[hash_token(piece) & (kSlots - 1)];
    slot.length = static_cast<std::uint8_t>(piece.size());
    slot.id_count = static_cast<std::uint8_t>(ids.size());
    std::memcpy(slot.piece, piece.data(), piece.size());
    std::copy(ids.begin(), ids.end(), slot.ids);
  }

 private:
  static constexpr std::size_t kSlots = 1 << 14;  // 1 MiB
  static constexpr std::size_t kIdsMax = 7;
  static constexpr std::size_t kPieceBytesMax = 34;

  struct alignas(64) Slot {
    std::int32_t ids[kIdsMax];
    std::uint8_t length = 0;
    std::uint8_t id_count = 0;
    char piece[kPieceBytesMax];
  };
  static_assert(sizeof(Slot) == 64);

  std::vector<Slot> slots_;
};

}  // namespace rl
