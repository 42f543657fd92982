#include "rl/model/attention_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace rl::forward {
namespace {

std::vector<RowSequence> sequences_of(std::span<const std::int64_t> lengths, std::int64_t shared) {
  std::vector<RowSequence> sequences;
  std::int64_t token = 0, row = 0;
  for (const std::int64_t length : lengths) {
    sequences.push_back({token, length, row, sequences.empty() ? 0 : std::min(shared, length)});
    token += length;
    row += sequences.back().rows();
  }
  return sequences;
}

std::int64_t bytes(const AttentionShape& shape, const AttentionBatch& batch) {
  return batch.count() * batch.queries * batch.keys * shape.heads * 4;
}

TEST(AttentionPlan, EveryRowIsAQueryOfOnePieceWithTheKeysItSees) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::int64_t> lengths;
    for (int n = 0; n < 12; ++n) lengths.push_back(1 + static_cast<std::int64_t>(random() % 90));
    const AttentionShape shape{
        .heads = 4, .kv_heads = 2, .head_dim = 8, .window = trial % 2 == 0 ? 0 : 20};
    const AttentionLimits limits{
        .queries_max = 16, .score_bytes_max = 40'000, .small_bytes_max = 4000};
    const auto sequences = sequences_of(lengths, trial % 3 * 5);
    std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
    for (const AttentionBatch& batch : plan_attention(sequences, shape, limits)) {
      std::int64_t cells = 0, previous = -1;
      for (const AttentionPiece& piece : batch.pieces) {
        EXPECT_GT(piece.sequence, previous) << "each sequence once, in order";
        previous = piece.sequence;
        EXPECT_LE(piece.queries, batch.queries);
        EXPECT_LE(piece.keys, batch.keys);
        EXPECT_EQ(piece.first_key, shape.first_key(piece.first_query));
        EXPECT_EQ(piece.first_key + piece.keys, piece.first_query + piece.queries);
        for (std::int64_t i = 0; i < piece.queries; ++i)
          ++seen[{piece.sequence, piece.first_query + i}];
        cells += piece.queries * piece.keys;
      }
      EXPECT_LE(bytes(shape, batch), limits.score_bytes_max);
      EXPECT_TRUE(bytes(shape, batch) <= limits.small_bytes_max ||
                  batch.count() * batch.queries * batch.keys <= 2 * cells);
    }
    std::size_t rows = 0;
    for (const RowSequence& sequence : sequences) rows += static_cast<std::size_t>(sequence.rows());
    EXPECT_EQ(seen.size(), rows);
    for (const auto& [query, times] : seen)
      EXPECT_TRUE(times == 1 &&
                  query.second >= sequences[static_cast<std::size_t>(query.first)].shared);
  }
}

TEST(AttentionPlan, ManyShortSequencesAreOneBatch) {
  const std::vector<std::int64_t> lengths(256, 60);
  const AttentionShape shape{.heads = 4, .kv_heads = 2, .head_dim = 8};
  EXPECT_EQ(plan_attention(sequences_of(lengths, 0), shape, {}).size(), 1U);
  EXPECT_EQ(plan_attention(sequences_of(lengths, 20), shape, {}).size(), 1U);
}

TEST(AttentionPlan, ScoresOfALongSequenceAreBounded) {
  const std::int64_t length = 100'000;
  const AttentionShape shape{.heads = 64, .kv_heads = 8, .head_dim = 128};
  const AttentionLimits limits;
  for (const AttentionBatch& batch : plan_attention(sequences_of({&length, 1}, 0), shape, limits))
    EXPECT_LE(bytes(shape, batch), limits.score_bytes_max);
}

TEST(AttentionPlan, OfNothingIsNothing) {
  const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 8};
  EXPECT_TRUE(plan_attention({}, shape, {}).empty());
  const RowSequence all_shared{.first_token = 4, .tokens = 4, .first_row = 4, .shared = 4};
  EXPECT_TRUE(plan_attention({&all_shared, 1}, shape, {}).empty());
}

}  // namespace
}  // namespace rl::forward
