#include "rl/model/attention_plan.h"

#include <algorithm>
#include <tuple>

#include "runtime/core/check.h"

namespace rl::forward {
namespace {

std::int64_t score_bytes(const AttentionShape& shape, std::int64_t cells) {
  return cells * shape.heads * static_cast<std::int64_t>(sizeof(float));
}

AttentionPiece piece_at(const AttentionShape& shape, const AttentionLimits& limits,
                        const RowSequence& of, std::int64_t first) {
  AttentionPiece piece{.first_query = first, .first_key = shape.first_key(first)};
  piece.queries = std::min(limits.queries_max, of.tokens - first);
  const auto keys = [&] { return first + piece.queries - piece.first_key; };
  while (piece.queries > 1 && score_bytes(shape, piece.queries * keys()) > limits.score_bytes_max)
    piece.queries /= 2;
  piece.keys = keys();
  return piece;
}

// A batch while it is filled.
class Filling {
 public:
  Filling(const AttentionShape& shape, const AttentionLimits& limits)
      : shape_(shape), limits_(limits) {}

  bool has_room_for(const AttentionPiece& piece) const {
    const std::int64_t cells = cells_ + piece.queries * piece.keys;
    const std::int64_t padded = (batch_.count() + 1) * std::max(batch_.queries, piece.queries) *
                                std::max(batch_.keys, piece.keys);
    const std::int64_t bytes = score_bytes(shape_, padded);
    return bytes <= limits_.score_bytes_max &&
           (bytes <= limits_.small_bytes_max || padded <= 2 * cells);
  }
  void add(const AttentionPiece& piece) {
    batch_.pieces.push_back(piece);
    batch_.queries = std::max(batch_.queries, piece.queries);
    batch_.keys = std::max(batch_.keys, piece.keys);
    cells_ += piece.queries * piece.keys;
  }
  void flush_to(std::vector<AttentionBatch>& batches) {
    if (batch_.pieces.empty()) return;
    std::sort(batch_.pieces.begin(), batch_.pieces.end(),
              [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    batches.push_back(std::move(batch_));
    batch_ = {};
    cells_ = 0;
  }

 private:
  const AttentionShape& shape_;
  const AttentionLimits& limits_;
  AttentionBatch batch_;
  std::int64_t cells_ = 0;  // without padding
};

}  // namespace

std::vector<AttentionBatch> plan_attention(std::span<const RowSequence> sequences,
                                           const AttentionShape& shape,
                                           const AttentionLimits& limits) {
  CHECK(limits.queries_max > 0);
  std::vector<std::vector<AttentionPiece>> rounds;  // the first piece of each sequence, the second
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    std::size_t round = 0;
    for (std::int64_t first = sequences[s].shared; first < sequences[s].tokens; ++round) {
      AttentionPiece piece = piece_at(shape, limits, sequences[s], first);
      piece.sequence = static_cast<std::int64_t>(s);
      first += piece.queries;
      if (round == rounds.size()) rounds.emplace_back();
      rounds[round].push_back(piece);
    }
  }
  std::vector<AttentionBatch> batches;
  Filling filling(shape, limits);
  for (std::vector<AttentionPiece>& round : rounds) {
    std::sort(round.begin(), round.end(), [](const auto& a, const auto& b) {
      return std::tie(a.queries, a.keys, a.sequence) < std::tie(b.queries, b.keys, b.sequence);
    });
    for (const AttentionPiece& piece : round) {
      if (!filling.has_room_for(piece)) filling.flush_to(batches);
      filling.add(piece);
    }
    filling.flush_to(batches);
  }
  return batches;
}

}  // namespace rl::forward
