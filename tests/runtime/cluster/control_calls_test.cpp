// What is asked of a head that dies happens once, and is answered as it happened.
#include "control_calls_fixture.h"

namespace runtime::test {
namespace {

using Op = ControlCall::Op;

TEST(ControlViolations, FindsWhatHappenedTwice) {
  const auto finds = [](std::vector<ControlCall> calls) {
    return !control_violations(calls).empty();
  };
  const ErrorCode ok = ErrorCode::kOk;
  EXPECT_FALSE(finds({{Op::kAdd, "a", 1, ok, 1, 5}, {Op::kAdd, "a", 2, ok, 2, 4}}));
  EXPECT_TRUE(finds({{Op::kAdd, "a", 1, ok, 1, 2}, {Op::kAdd, "a", 3, ok, 3, 4}}));
  EXPECT_TRUE(finds({{Op::kAdd, "a", 2, ok, 1, 2}, {Op::kAdd, "a", 1, ok, 3, 4}}));
  EXPECT_TRUE(finds({{Op::kAdd, "a", 1, ErrorCode::kUnavailable, 1, 2}}));
  EXPECT_FALSE(finds({{Op::kDelete, "k", 1, ok, 1, 2}, {Op::kDelete, "k", 0, ok, 3, 4}}));
  EXPECT_TRUE(finds({{Op::kDelete, "k", 0, ok, 1, 2}, {Op::kDelete, "k", 0, ok, 3, 4}}));
  EXPECT_TRUE(finds({{Op::kDelete, "k", 0, ok, 1, 2}, {Op::kDelete, "k", 1, ok, 3, 4}}));
  const ErrorCode refused = ErrorCode::kInvalidArgument;
  EXPECT_FALSE(
      finds({{Op::kPublish, "w@1", 1, ok, 1, 2}, {Op::kPublish, "w@1", 1, refused, 3, 4}}));
  EXPECT_TRUE(finds({{Op::kPublish, "w@1", 1, refused, 1, 2}}));
  EXPECT_TRUE(finds({{Op::kPublish, "w@1", 1, ok, 1, 2}, {Op::kPublish, "w@1", 1, ok, 3, 4}}));
  EXPECT_TRUE(finds({{Op::kRemove, "g", 0, ErrorCode::kNotFound, 1, 2}}));
  EXPECT_TRUE(finds({{Op::kUnpublish, "w@1", 1, ErrorCode::kNotFound, 1, 2}}));
  EXPECT_TRUE(finds({{Op::kPut, "p", 2, ok, 1, 2}, {Op::kRead, "p", 1, ok, 3, 4}}));
}

TEST_F(ControlCallsTest, HappenOnceThroughAnotherNode) { call_while_heads_die(10s, 1); }

TEST_F(ControlCallsTest, HappenOnceBesideTheHead) { call_while_heads_die(6s, 0); }

}  // namespace
}  // namespace runtime::test
