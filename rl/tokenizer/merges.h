// The merges of byte-pair encoding and their application, apart from where the symbols come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/tokenizer/vocabulary.h"
#include "runtime/core/result.h"

namespace rl {

/// What a pair of neighbours becomes, and how early: lower ranks merge first, of equal ranks the
/// leftmost.
struct Merge {
  std::uint32_t rank = 0;
  std::int32_t id = -1;
};

/// Merges by pair of ids. Open addressing over one array: a lookup is one cache miss.
class MergeTable {
 public:
  /// For up to `count_max` merges.
  explicit MergeTable(std::size_t count_max);

  /// The last entry of a pair counts.
  void insert(std::int32_t left, std::int32_t right, Merge merge);

  const Merge* find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = pair_key(left, right);
    for (std::size_t at = slot_of(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return &slots_[at].merge;
      if (slots_[at].key == kEmpty) return nullptr;
    }
  }

 private:
  static constexpr std::uint64_t kEmpty =
      ~std::uint64_t{0};  // ids are not negative, so no pair has this key
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge;
  };
  static std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    return ((key * 0x9e3779b97f4a7c15u) >> 32) & mask_;
  }

  std::vector<Slot> slots_;
  std::size_t mask_;
};

/// Merges given as pairs of tokens, earliest first. The right token of a merge loses
/// `continuing_prefix` when joined. Errors name the merge: kInvalidArgument (one of its tokens, or
/// what they give, is not in the vocabulary).
runtime::Result<MergeTable> make_merges(
    const Vocabulary& vocabulary,
    std::span<const std::pair<std::string_view, std::string_view>> merges,
    std::string_view continuing_prefix);

/// SentencePiece's BPE has scores instead of merges: any two neighbours that form a token may
/// merge, the highest score first. `scores` by id; ids without `mergeable` (control and byte
/// tokens, say) are never formed.
MergeTable make_merges_from_scores(const Vocabulary& vocabulary, std::span<const double> scores,
                                   const std::vector<bool>& mergeable);

/// Working memory of apply_merges; keeps its capacity.
struct MergeScratch {
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t position;
    std::int32_t id;
  };
  std::vector<Candidate> heap;
  std::vector<std::uint32_t> previous;
  std::vector<std::uint32_t> next;
};

/// Merges neighbours in `symbols` until none has a merge. Cost: quadratic up to 64 symbols, where
/// that is the fastest, then n log n. `lengths` (may be null), one per symbol, are added up along.
void apply_merges(const MergeTable& merges, std::vector<std::int32_t>& symbols,
                  MergeScratch& scratch, std::vector<std::uint32_t>* lengths = nullptr);

}  // namespace rl
