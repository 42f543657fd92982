// Requests to a head that dies: each happens once, and is answered as it happened.
#include "control_calls_fixture.h"

namespace runtime::test {
namespace {

TEST(ControlViolations, FindsWhatHappenedTwice) {
  const auto finds = [](std::vector<ControlCall> calls) {
    return !control_violations(calls).empty();
  };
  const ErrorCode ok = ErrorCode::kOk;
  EXPECT_FALSE(finds({{ControlOp::kAdd, "a", 1, ok, 1, 5}, {ControlOp::kAdd, "a", 2, ok, 2, 4}}));
  EXPECT_TRUE(finds({{ControlOp::kAdd, "a", 1, ok, 1, 2}, {ControlOp::kAdd, "a", 3, ok, 3, 4}}));
  EXPECT_TRUE(finds({{ControlOp::kAdd, "a", 2, ok, 1, 2}, {ControlOp::kAdd, "a", 1, ok, 3, 4}}));
  EXPECT_TRUE(finds({{ControlOp::kAdd, "a", 1, ErrorCode::kUnavailable, 1, 2}}));
  EXPECT_FALSE(
      finds({{ControlOp::kDelete, "k", 1, ok, 1, 2}, {ControlOp::kDelete, "k", 0, ok, 3, 4}}));
  EXPECT_TRUE(
      finds({{ControlOp::kDelete, "k", 0, ok, 1, 2}, {ControlOp::kDelete, "k", 0, ok, 3, 4}}));
  EXPECT_TRUE(
      finds({{ControlOp::kDelete, "k", 0, ok, 1, 2}, {ControlOp::kDelete, "k", 1, ok, 3, 4}}));
  const ErrorCode refused = ErrorCode::kInvalidArgument;
  EXPECT_FALSE(finds(
      {{ControlOp::kPublish, "w@1", 1, ok, 1, 2}, {ControlOp::kPublish, "w@1", 1, refused, 3, 4}}));
  EXPECT_TRUE(finds({{ControlOp::kPublish, "w@1", 1, refused, 1, 2}}));
  EXPECT_TRUE(finds(
      {{ControlOp::kPublish, "w@1", 1, ok, 1, 2}, {ControlOp::kPublish, "w@1", 1, ok, 3, 4}}));
  EXPECT_TRUE(finds({{ControlOp::kRemove, "g", 0, ErrorCode::kNotFound, 1, 2}}));
  EXPECT_TRUE(finds({{ControlOp::kUnpublish, "w@1", 1, ErrorCode::kNotFound, 1, 2}}));
  EXPECT_TRUE(finds({{ControlOp::kPut, "p", 2, ok, 1, 2}, {ControlOp::kRead, "p", 1, ok, 3, 4}}));
}

TEST_F(ControlCallsTest, HappenOnceThroughAnotherNode) { call_while_heads_die(10s, 1); }

TEST_F(ControlCallsTest, HappenOnceNextToTheHead) { call_while_heads_die(6s, 0); }

}  // namespace
}  // namespace runtime::test
