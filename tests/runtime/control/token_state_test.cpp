#include "runtime/control/token_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace runtime {
namespace {

using namespace std::chrono_literals;

TEST(TokenState, EarlierTokensCountForWhatWasLeft) {
  const Deadline before = steady_now();
  const Tokens tokens = tokens_of({"new", 7, {{"old", 60s}, {"older", 0s}}});
  EXPECT_EQ(tokens.present, "new");
  EXPECT_EQ(tokens.version, 7u);
  ASSERT_EQ(tokens.also.size(), 2u);
  EXPECT_GE(tokens.also[0].until, before + 60s);
  EXPECT_LE(tokens.also[0].until, steady_now() + 60s);
  EXPECT_LE(tokens.also[1].until, steady_now());
}

TEST(TokenState, WhatIsSaidOnIsWhatIsLeftThen) {
  Tokens tokens{"new", 7, {{"old", steady_now() + 60s}, {"over", steady_now() - 1s}}};
  const TokenState state = state_of(tokens);
  EXPECT_EQ(state.token, "new");
  EXPECT_EQ(state.version, 7u);
  ASSERT_EQ(state.earlier.size(), 2u);
  EXPECT_LE(state.earlier[0].left, 60s);
  EXPECT_GT(state.earlier[0].left, 0s);
  EXPECT_EQ(state.earlier[1].left, 0s) << "no time is below zero";
}

TEST(TokenState, AnExpectedTokenIsNotSaidOn) {
  const TokenState state = state_of({"new", 7, {{"next", Deadline::max()}}});
  EXPECT_TRUE(state.earlier.empty()) << "whether it comes to count is not known yet";
}

}  // namespace
}  // namespace runtime
