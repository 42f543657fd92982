#include "rl/tokenizer/aligned_text.h"

#include <gtest/gtest.h>

#include <vector>

namespace rl {
namespace {

using Origins = std::vector<Piece>;

AlignedText changed(AlignedText text, const std::vector<CharacterChange>& changes) {
  apply_changes(changes, text);
  return text;
}

TEST(AlignedText, TheBytesOfACharacterStandForAllOfIt) {
  const AlignedText aligned = align("a\u00e9", 10);
  EXPECT_EQ(aligned.text, "a\u00e9");
  EXPECT_EQ(aligned.origins, (Origins{{10, 11}, {11, 13}, {11, 13}}));
  EXPECT_EQ(aligned.start(), (Piece{10, 10}));
}

TEST(AlignedText, WhatReplacesSeveralHasTheOriginOfTheFirst) {
  const AlignedText composed = changed(align("e\u0301x", 0), {{U'\u00e9', -1}, {U'x', 0}});
  EXPECT_EQ(composed.text, "\u00e9x");
  EXPECT_EQ(composed.origins, (Origins{{0, 1}, {0, 1}, {3, 4}}));
}

TEST(AlignedText, AnAdditionalCharacterHasTheOriginOfTheOneBeforeIt) {
  const AlignedText spelled = changed(align("\ufb01b", 0), {{U'f', 0}, {U'i', 1}, {U'b', 0}});
  EXPECT_EQ(spelled.text, "fib");
  EXPECT_EQ(spelled.origins, (Origins{{0, 3}, {0, 3}, {3, 4}}));
  const AlignedText in_front = changed(align("a", 5), {{U'^', 1}, {U'a', 0}});
  EXPECT_EQ(in_front.text, "^a");
  EXPECT_EQ(in_front.origins, (Origins{{5, 5}, {5, 6}})) << "before the first there is nothing";
}

// Characters that a normalizer takes away at the beginning of a text leave too few of the new ones.
TEST(AlignedText, OldCharactersMayRunOutOrBeLeft) {
  const AlignedText left = changed(align("ab", 0), {{U'x', 0}});
  EXPECT_EQ(left.text, "x");
  EXPECT_EQ(left.origins, (Origins{{0, 1}}));
  const AlignedText out = changed(align("ab", 3), {{U'x', -5}, {U'y', 0}});
  EXPECT_EQ(out.text, "xy");
  EXPECT_EQ(out.origins, (Origins{{3, 4}, {3, 3}}));
}

TEST(AlignedRewriter, TakesTheTextsPlaceOnlyAtTheEnd) {
  AlignedText text = align("abc", 4);
  AlignedRewriter rewriter(text);
  rewriter.add("--", 1);
  rewriter.keep(1, 3);
  rewriter.add("+", 3);
  rewriter.add("!", Piece{6, 7});
  EXPECT_EQ(text.text, "abc");
  rewriter.finish();
  EXPECT_EQ(text.text, "--bc!") << "the old text has no byte 3 to stand for";
  EXPECT_EQ(text.origins, (Origins{{5, 6}, {5, 6}, {5, 6}, {6, 7}, {6, 7}}));
  EXPECT_EQ(text.begin, 4u);
}

}  // namespace
}  // namespace rl
