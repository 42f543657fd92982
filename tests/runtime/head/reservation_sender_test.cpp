// Messages to nodes about placement groups: one at a time, and nothing twice.
#include "runtime/head/reservation_sender.h"

#include "head_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ReservationSenderTest : public ::testing::Test {
 protected:
  struct Heard {
    std::size_t asked;
    bool ok;
    std::size_t refused;
  };
  /// The message that the node has got and not answered; fails if there is none.
  SentRequest taken() {
    auto sent = links_.take<control::Reserve>();
    EXPECT_TRUE(sent);
    return sent ? std::move(*sent) : SentRequest{};
  }
  static const control::Reserve& said(const SentRequest& sent) {
    return std::get<control::Reserve>(sent.request.body);
  }
  static ResourceMap cpu() { return {{"CPU", 1.0}}; }

  const NodeId node_ = NodeId::random();
  const GroupId first_ = GroupId::random(), second_ = GroupId::random();
  ClusterTables tables_;
  RecordingLinks links_;
  Deadline time_ = Deadline() + 1h;
  const std::function<Deadline()> now_ = [this] { return time_; };
  const HeadOptions options_;
  CpuScheduler scheduler_;
  const HeadContext context_{tables_, scheduler_, links_, now_, options_};
  std::vector<Heard> heard_;
  ReservationSender sender_{
      context_, [this](NodeId, const auto& asked, const auto& answer) {
        heard_.push_back({asked.size(), answer.ok(), answer.ok() ? answer->refused.size() : 0});
      }};
};

TEST_F(ReservationSenderTest, GathersWhileAMessageIsUnderWay) {
  sender_.prepare(node_, {first_, 1}, cpu());
  SentRequest one = taken();
  EXPECT_EQ(said(one).prepare.size(), 1u);
  sender_.prepare(node_, {second_, 2}, cpu());
  sender_.commit(node_, first_);
  EXPECT_FALSE(links_.take<control::Reserve>()) << "one at a time";
  one.answer(ControlAnswer{control::Refusals{}});
  const SentRequest two = taken();
  EXPECT_EQ(said(two).prepare.size(), 1u);
  EXPECT_EQ(said(two).commit, std::vector{first_});
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_EQ(heard_[0].asked, 1u);
  EXPECT_TRUE(heard_[0].ok);
}

TEST_F(ReservationSenderTest, WhatNoCallerWaitsForLeavesALittleLater) {
  sender_.release(node_, first_);
  sender_.commit(node_, second_);
  EXPECT_FALSE(links_.take<control::Reserve>());
  const Deadline due = sender_.next_tick();
  EXPECT_GT(due, time_);
  sender_.tick(time_);
  EXPECT_FALSE(links_.take<control::Reserve>());
  time_ = due;
  sender_.tick(time_);
  const SentRequest sent = taken();
  EXPECT_EQ(said(sent).release, std::vector{first_});
  EXPECT_EQ(said(sent).commit, std::vector{second_});
  EXPECT_EQ(sender_.next_tick(), Deadline::max());
}

TEST_F(ReservationSenderTest, WhatIsReleasedBeforeItLeftIsNotPrepared) {
  sender_.prepare(node_, {first_, 1}, cpu());
  SentRequest one = taken();
  sender_.prepare(node_, {second_, 2}, cpu());
  sender_.release(node_, second_);
  one.answer(ControlAnswer{control::Refusals{{{first_, "no room"}}}});
  EXPECT_FALSE(links_.take<control::Reserve>());
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_EQ(heard_[0].refused, 1u);
}

TEST_F(ReservationSenderTest, ANodeThatIsBackIsToldAllThatItHolds) {
  sender_.prepare(node_, {first_, 1}, cpu());
  SentRequest lost = taken();
  sender_.renew(node_, {{second_, cpu()}});
  const SentRequest all = taken();
  EXPECT_TRUE(said(all).reset);
  EXPECT_EQ(said(all).prepare.size(), 1u);
  EXPECT_EQ(said(all).commit, std::vector{second_});
  // The answer over the old connection changes nothing of the new one's turn.
  lost.answer(unavailable("the connection broke"));
  sender_.prepare(node_, {first_, 2}, cpu());
  EXPECT_FALSE(links_.take<control::Reserve>());
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_FALSE(heard_[0].ok);
}

TEST_F(ReservationSenderTest, AnswersThatSayNothingCountAsRefusals) {
  sender_.prepare(node_, {first_, 1}, cpu());
  taken().answer(ControlAnswer{});
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_FALSE(heard_[0].ok);
  sender_.forget(node_);
  sender_.tick(time_ + 1h);
  EXPECT_FALSE(links_.take<control::Reserve>());
}

}  // namespace
}  // namespace runtime
