#include "placement/autoscaler/cluster_removal.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/turned_clock.h"

namespace placement {
namespace {

using namespace std::chrono_literals;
using runtime::Status;

/// Removes when the test says so.
class FakeProvider final : public NodeProvider {
 public:
  void add(const NodeRequest&, Done) override { ADD_FAILURE() << "the cluster stops"; }
  void remove(const std::string& id, Done done) override {
    EXPECT_TRUE(removals.emplace(id, std::move(done)).second) << id << " is being removed already";
    asked.push_back(id);
  }
  void list(Listed) override { ADD_FAILURE() << "the planner knows them"; }
  std::string removal_by_hand(const std::string& id) const override {
    return has_hand ? "cloud delete " + id : "";
  }
  void abandon() override {}
  bool ends_with_cluster() const override { return ends_with_it; }

  void answer(const std::string& id, const Status& status = {}) {
    const auto removal = removals.extract(id);
    ASSERT_FALSE(removal.empty()) << id << " is not being removed";
    removal.mapped()(status);
  }
  /// What it was asked to remove since the last look.
  std::vector<std::string> news() { return std::exchange(asked, {}); }

  bool ends_with_it = false, has_hand = false;
  std::map<std::string, Done> removals;  // without an answer yet
  std::vector<std::string> asked;
};

class ClusterRemovalTest : public ::testing::Test {
 protected:
  using Ids = std::vector<std::string>;

  void have(const Ids& ids, NodePhase phase = NodePhase::kJoined) {
    std::vector<NodeRecord> records;
    for (const std::string& id : ids) records.push_back({.id = id, .type = "w", .phase = phase});
    planner_.restore(std::move(records), runtime::steady_now());
  }
  void start(std::chrono::milliseconds timeout = 30s) {
    removal_->start(timeout, [this] { ++done_; });
  }
  Ids known() const {
    Ids ids;
    for (const NodeRecord& record : planner_.records()) ids.push_back(record.id);
    return ids;
  }
  void answer_record(const Status& status) {
    ASSERT_TRUE(record_) << "nothing is being recorded";
    std::exchange(record_, nullptr)(status);
  }

  support::TurnedClock clock_;
  runtime::EventLoop loop_;
  NodePlanner planner_{{}, [](const std::string&) { return std::string(); }};
  FakeProvider provider_;
  std::function<void(Status)> record_;  // without an answer yet
  int done_ = 0;
  std::unique_ptr<ClusterRemoval> removal_ = std::make_unique<ClusterRemoval>(
      loop_, planner_, provider_,
      [this](std::function<void(Status)> then) { record_ = std::move(then); });
};

TEST_F(ClusterRemovalTest, RemovesAllAndIsDoneOnceThatIsRecorded) {
  have({"a", "b"});
  start();
  EXPECT_EQ(provider_.news(), (Ids{"a", "b"}));
  provider_.answer("b");
  clock_.turn(0s);
  EXPECT_EQ(known(), (Ids{"a"}));
  EXPECT_FALSE(record_) << "one is left";
  provider_.answer("a");
  clock_.turn(0s);
  EXPECT_TRUE(known().empty());
  ASSERT_TRUE(record_);
  EXPECT_EQ(done_, 0);
  answer_record({});
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(removal_->left(), "");
  ::testing::internal::CaptureStderr();  // where the log goes
  clock_.turn(1h);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "the end of its time is no news";
  EXPECT_EQ(done_, 1);
  EXPECT_TRUE(provider_.news().empty());
}

TEST_F(ClusterRemovalTest, OfNoMachinesOnlyTheRecordIsWritten) {
  start();
  EXPECT_EQ(done_, 0);
  answer_record(runtime::unavailable("the head is away"));
  EXPECT_EQ(done_, 1) << "a head that is away keeps no machine";
  EXPECT_EQ(removal_->left(), "");
}

TEST_F(ClusterRemovalTest, NodesThatEndWithTheirClusterAreLeftToThat) {
  provider_.ends_with_it = true;
  have({"wanted"}, NodePhase::kWanted);
  have({"starting"}, NodePhase::kStarting);
  have({"joined"}, NodePhase::kJoined);
  have({"retiring"}, NodePhase::kRetiring);
  have({"removing"}, NodePhase::kRemoving);
  start();
  EXPECT_EQ(provider_.news(), (Ids{"removing", "starting", "wanted"}));
  for (const char* id : {"removing", "starting", "wanted"}) provider_.answer(id);
  clock_.turn(0s);
  answer_record({});
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(known(), (Ids{"joined", "retiring"}));
  EXPECT_EQ(removal_->left(), "") << "nothing of them is";
}

TEST_F(ClusterRemovalTest, NodesOfAllPhasesAreRemovedWhereNoneEndsByItself) {
  have({"joined"}, NodePhase::kJoined);
  have({"retiring"}, NodePhase::kRetiring);
  have({"wanted"}, NodePhase::kWanted);
  start();
  EXPECT_EQ(provider_.news(), (Ids{"joined", "retiring", "wanted"}));
}

TEST_F(ClusterRemovalTest, WhatFailsIsTriedAgainAfterASecond) {
  have({"a", "b"});
  start();
  provider_.news();
  provider_.answer("a");
  provider_.answer("b", runtime::unavailable("the cloud is busy"));
  clock_.turn(999ms);
  EXPECT_TRUE(provider_.news().empty());
  clock_.turn(1ms);
  EXPECT_EQ(provider_.news(), (Ids{"b"}));
  provider_.answer("b");
  clock_.turn(0s);
  answer_record({});
  EXPECT_EQ(done_, 1);
}

TEST_F(ClusterRemovalTest, ARoundBeginsWhenAllOfTheLastHaveAnswered) {
  have({"a", "b"});
  start();
  provider_.news();
  provider_.answer("a", runtime::unavailable("busy"));
  clock_.turn(10s);
  EXPECT_TRUE(provider_.news().empty());
  provider_.answer("b", runtime::unavailable("busy"));
  clock_.turn(1s);
  EXPECT_EQ(provider_.news(), (Ids{"a", "b"}));
}

TEST_F(ClusterRemovalTest, AtTheEndOfItsTimeItSaysWhatIsLeftAndWhy) {
  provider_.has_hand = true;
  have({"a", "b", "c"});
  start();
  provider_.answer("a", runtime::resource_exhausted("no more requests this hour"));
  provider_.answer("b");
  clock_.turn(30s - 1ns);
  EXPECT_EQ(done_, 0);
  clock_.turn(1ns);
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(
      removal_->left(),
      "the autoscaler could not remove 2 machines within stop_timeout, 30 s; the remaining nodes "
      "may keep running, and cost:\n"
      "  a: no more requests this hour\n"
      "    by hand: cloud delete a\n"
      "  c: its removal has not ended\n"
      "    by hand: cloud delete c");
}

TEST_F(ClusterRemovalTest, ALateAnswerCountsAndBeginsNothing) {
  have({"a", "b"});
  start(2s);
  provider_.news();
  provider_.answer("a", runtime::unavailable("busy"));
  clock_.turn(2s);
  EXPECT_EQ(done_, 1);
  provider_.answer("b");
  clock_.turn(1h);
  EXPECT_EQ(
      removal_->left(),
      "the autoscaler could not remove 1 machine within stop_timeout, 2 s; the remaining nodes may "
      "keep running, and cost:\n  a: busy");
  EXPECT_TRUE(provider_.news().empty());
  EXPECT_FALSE(record_);
  EXPECT_EQ(done_, 1);
}

TEST_F(ClusterRemovalTest, ARoundThatWasDueBehindTheEndIsNotBegun) {
  have({"a"});
  start(1500ms);
  provider_.news();
  clock_.turn(600ms);
  provider_.answer("a", runtime::unavailable("busy"));
  clock_.turn(900ms);
  EXPECT_EQ(done_, 1);
  clock_.turn(1h);
  EXPECT_TRUE(provider_.news().empty());
}

TEST_F(ClusterRemovalTest, ARecordThatIsLateEndsNothingTwice) {
  start(2s);
  clock_.turn(2s);
  EXPECT_EQ(done_, 1);
  answer_record({});
  EXPECT_EQ(done_, 1);
}

TEST_F(ClusterRemovalTest, WhatIsLeftIsToldInBounds) {
  Ids ids;
  for (int i = 10; i < 35; ++i) ids.push_back("n" + std::to_string(i));
  have(ids);
  start(1s);
  const std::string long_why(499, 'x');
  provider_.answer("n10", runtime::unavailable(long_why + "yz"));
  clock_.turn(1s);
  const std::string text = removal_->left();
  EXPECT_NE(text.find("could not remove 25 machines"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  n10: " + long_why + "y\n  n11: "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  n29: its removal has not ended\n  and 5 more"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("n30"), std::string::npos) << text;
}

TEST_F(ClusterRemovalTest, AnswersThatComeAfterItsEndDoNothing) {
  have({"a", "b"});
  start();
  removal_.reset();
  provider_.answer("a");
  provider_.answer("b", runtime::unavailable("busy"));
  clock_.turn(1h);
  EXPECT_EQ(known(), (Ids{"a", "b"}));
  EXPECT_EQ(done_, 0);
}

}  // namespace
}  // namespace placement
