// Requests to nodes that are not back yet.
#include "runtime/head/away_requests.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>

namespace runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AwayRequestsTest : public ::testing::Test {
 protected:
  /// What it is answered with, in time.
  std::shared_ptr<std::optional<Result<ControlAnswer>>> add(NodeId node, milliseconds timeout) {
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    ControlRequest request{JobId::random(), timeout, control::CancelJob{JobId::random()}};
    requests_.add(node, now_, {std::move(request), [answer](Result<ControlAnswer> given) {
                                 *answer = std::move(given);
                               }});
    return answer;
  }

  const Deadline now_ = Deadline() + std::chrono::hours(1);
  const NodeId node_ = NodeId::random(), other_ = NodeId::random();
  AwayRequests requests_;
};

TEST_F(AwayRequestsTest, AreTakenInTheirOrderWithTheTimeThatIsLeft) {
  add(node_, seconds(5));
  add(other_, seconds(5));
  add(node_, seconds(7));
  auto taken = requests_.take(node_, now_ + seconds(2));
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].request.timeout, seconds(3));
  EXPECT_EQ(taken[1].request.timeout, seconds(5));
  EXPECT_TRUE(requests_.take(node_, now_).empty());
  EXPECT_EQ(requests_.take(other_, now_ + seconds(9))[0].request.timeout, milliseconds(1));
  EXPECT_EQ(requests_.earliest(), Deadline::max());
}

TEST_F(AwayRequestsTest, AreAnsweredWhenTheirTimeHasPassed) {
  const auto first = add(node_, seconds(5)), second = add(node_, seconds(7));
  EXPECT_EQ(requests_.earliest(), now_ + seconds(5));
  requests_.expire(now_ + seconds(5));
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ((*first)->status().code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(second->has_value());
  EXPECT_EQ(requests_.earliest(), now_ + seconds(7));
  EXPECT_EQ(requests_.take(node_, now_).size(), 1u);
}

TEST_F(AwayRequestsTest, TheHeadsOwnAreNotKept) {
  EXPECT_TRUE(awaits_node(control::CancelJob{}));
  EXPECT_TRUE(awaits_node(ObjectControl{control::AdoptObject{}}));
  EXPECT_FALSE(awaits_node(control::StartActor{}));
  EXPECT_FALSE(awaits_node(control::StopActor{}));
  EXPECT_FALSE(awaits_node(control::EndJob{}));
  EXPECT_FALSE(awaits_node(ObjectControl{control::DropObject{}}));
}

}  // namespace
}  // namespace runtime
