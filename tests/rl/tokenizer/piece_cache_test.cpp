#include "rl/tokenizer/piece_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rl {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(PieceCache, GivesWhatWasInsertedBehindWhatIsThere) {
  PieceCache cache;
  Ids ids = {9};
  EXPECT_FALSE(cache.find("word", ids));
  EXPECT_EQ(ids, Ids{9});
  cache.insert("word", Ids{1, 2});
  EXPECT_TRUE(cache.find("word", ids));
  EXPECT_EQ(ids, (Ids{9, 1, 2}));
  EXPECT_FALSE(cache.find("wor", ids));
  EXPECT_FALSE(cache.find("words", ids));
  cache.insert("word", Ids{3});
  ids.clear();
  EXPECT_TRUE(cache.find("word", ids));
  EXPECT_EQ(ids, Ids{3}) << "the last one counts";
}

TEST(PieceCache, APieceWithoutIdsIsKnownToo) {
  PieceCache cache;
  Ids ids;
  cache.insert("dropped", {});
  EXPECT_TRUE(cache.find("dropped", ids));
  EXPECT_TRUE(ids.empty());
}

TEST(PieceCache, LongPiecesAndThoseOfManyIdsAreNotKept) {
  PieceCache cache;
  Ids ids;
  const std::string longest(34, 'x');
  cache.insert(longest, Ids(7, 1));
  EXPECT_TRUE(cache.find(longest, ids));
  EXPECT_EQ(ids, Ids(7, 1));
  cache.insert(longest + "x", Ids{1});
  EXPECT_FALSE(cache.find(longest + "x", ids));
  cache.insert("many", Ids(8, 1));
  EXPECT_FALSE(cache.find("many", ids));
}

TEST(PieceCache, PiecesThatShareASlotAreNeverConfused) {
  PieceCache cache;
  constexpr std::int32_t kPieces = 60'000;
  for (std::int32_t i = 0; i < kPieces; ++i) cache.insert("piece " + std::to_string(i), Ids{i});
  std::int32_t found = 0;
  for (std::int32_t i = 0; i < kPieces; ++i) {
    Ids ids;
    if (!cache.find("piece " + std::to_string(i), ids)) continue;
    ASSERT_EQ(ids, Ids{i});
    ++found;
  }
  EXPECT_GT(found, 1'000);
  EXPECT_LT(found, kPieces) << "there are fewer slots";
  Ids last;
  EXPECT_TRUE(cache.find("piece " + std::to_string(kPieces - 1), last)) << "a newcomer has it";
}

}  // namespace
}  // namespace rl
