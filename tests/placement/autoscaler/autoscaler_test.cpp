// The requests of the autoscaler to the head and to its provider, and their order.
#include "placement/autoscaler/autoscaler.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/control/fake_node.h"

namespace placement {
namespace {

using namespace std::chrono_literals;
using runtime::comes_true;
using runtime::Result;
using runtime::run_on;
using runtime::Status;
namespace control = runtime::control;

/// Does what it is asked when the test says so. On the loop.
class AskedProvider final : public NodeProvider {
 public:
  void add(const NodeRequest& request, Done done) override {
    additions.push_back(request);
    answers[request.id] = std::move(done);
  }
  void remove(const std::string& id, Done done) override {
    removals.push_back(id);
    answers[id] = std::move(done);
  }
  void list(Listed done) override {
    ++lists;
    listed = std::move(done);
  }
  std::string removal_by_hand(const std::string&) const override { return ""; }
  void abandon() override {
    ++abandoned;
    answers.clear();
  }
  bool ends_with_cluster() const override { return ends_with_it; }

  bool ends_with_it = false;
  std::vector<NodeRequest> additions;
  std::vector<std::string> removals;
  std::map<std::string, Done> answers;  // by node, without one yet
  int lists = 0;
  int abandoned = 0;
  Listed listed;
};

/// The head answers what the demand is, and takes statuses. Records wait for the test.
class AutoscalerTest : public ::testing::Test {
 protected:
  AutoscalerTest() {
    config_.max_nodes = 6;
    config_.up_cooldown = 0s;
    config_.down_cooldown = 0s;
    config_.idle_timeout = 1h;
    config_.interval = 1ms;
    NodeType type;
    type.name = "w";
    type.resources = *Resources::from_map({{"CPU", 4}});
    type.labels = {{"zone", "a"}};
    type.max_nodes = 4;
    config_.types.push_back(type);
    runtime::NodeUse head;
    head.info.node = runtime::NodeId::random();
    head.info.is_head = true;
    head.info.resources = head.info.available = {{"CPU", 1}};
    demand_.nodes.push_back(head);
  }
  ~AutoscalerTest() override {
    run_on(loop_, [&] { autoscaler_.reset(); });
    client_.reset();
    run_on(loop_, [] {});  // what that closed
  }

  void make() {
    auto provider = std::make_unique<AskedProvider>();
    provider_ = provider.get();
    run_on(loop_, [&] {
      autoscaler_ = std::make_unique<Autoscaler>(loop_, Autoscaler::Options{config_, "nodes.yaml"},
                                                 *client_, std::move(provider));
      autoscaler_->start([this](const Status& why) { failed_ = why; });
    });
  }
  /// From these records; none: there never were any.
  void begin(const std::vector<NodeRecord>& records = {}) {
    make();
    const auto asked = node_.next<control::KvGet>();
    EXPECT_EQ(asked.key, kRecordsKey);
    EXPECT_FALSE(asked.wait);
    if (!records.empty())
      return node_.answer<control::KvGet>(runtime::ControlAnswer(encode_records(records)));
    node_.answer<control::KvGet>(runtime::not_found("no such pair"));
    EXPECT_TRUE(recorded().empty()) << "that there are none is recorded first";
  }
  /// This number of actors waits for a node of four CPUs each.
  void pending(std::uint64_t count) {
    std::lock_guard lock(mutex_);
    demand_.actors.clear();
    if (count > 0) demand_.actors.push_back({{{"CPU", 4}}, {}, count, "actor A"});
  }
  void join(const std::string& id) {
    runtime::NodeUse use;
    use.info.node = runtime::NodeId::random();
    use.info.resources = use.info.available = {{"CPU", 4}};
    use.info.labels = config_.types[0].labels_of(id, Capacity::kOnDemand);
    std::lock_guard lock(mutex_);
    demand_.nodes.push_back(use);
  }
  runtime::NodeId joined() const { return demand_.nodes.back().info.node; }
  void leave() {
    std::lock_guard lock(mutex_);
    demand_.nodes.pop_back();
  }
  /// What it wants to have recorded; it waits for the answer.
  std::vector<NodeRecord> asked_record() {
    const auto put = node_.next<control::KvPut>();
    EXPECT_EQ(put.key, kRecordsKey);
    auto records = decode_records(put.value);
    EXPECT_TRUE(records.ok()) << records.status().to_string();
    return records.ok() ? *records : std::vector<NodeRecord>();
  }
  std::vector<NodeRecord> recorded() {
    std::vector<NodeRecord> records = asked_record();
    node_.answer<control::KvPut>();
    return records;
  }
  /// Waits until the condition of the provider, or of the autoscaler, holds.
  template <class Condition>
  bool waits_for(Condition condition) {
    return comes_true(loop_, condition);
  }
  void answer(const std::string& id, const Status& status = {}) {
    run_on(loop_, [&] {
      const auto asked = provider_->answers.extract(id);
      ASSERT_FALSE(asked.empty()) << id << " waits for no answer";
      asked.mapped()(status);
    });
  }
  /// A node that was added and has joined. Returns its id.
  std::string grown() {
    pending(1);
    const std::string id = recorded().at(0).id;
    EXPECT_TRUE(waits_for([&] { return provider_->additions.size() == 1; }));
    answer(id);
    EXPECT_EQ(recorded().at(0).phase, NodePhase::kStarting);
    join(id);
    pending(0);
    EXPECT_EQ(recorded().at(0).phase, NodePhase::kJoined);
    EXPECT_TRUE(config_.idle_timeout < 1h || looks_again());
    return id;
  }
  std::size_t looks() {
    std::lock_guard lock(mutex_);
    return looks_;
  }
  /// Waits until it has looked once more, to the end.
  bool looks_again() {
    const std::size_t before = looks();
    return support::eventually([&] { return looks() >= before + 2; });
  }

  AutoscalerConfig config_;
  std::mutex mutex_;  // guards what follows, which the node's loop uses
  runtime::Demand demand_;
  bool is_head_away_ = false;
  std::size_t looks_ = 0;
  std::vector<std::string> statuses_;

  runtime::FakeNode node_{
      [this](const runtime::ControlRequest::Body& body, runtime::ControlAnswerer& answer) {
        std::lock_guard lock(mutex_);
        if (std::holds_alternative<control::QueryDemand>(body)) {
          ++looks_;
          if (is_head_away_)
            answer(runtime::unavailable("the head is away"));
          else
            answer(runtime::ControlAnswer(demand_));
          return true;
        }
        const auto* put = std::get_if<control::KvPut>(&body);
        if (!put || put->key != kStatusKey) return false;
        statuses_.push_back(put->value);
        answer(runtime::ControlAnswer());
        return true;
      }};
  runtime::EventLoop loop_;
  std::unique_ptr<runtime::NodeClient> client_ = node_.connect(loop_);
  AskedProvider* provider_ = nullptr;  // the autoscaler's
  std::optional<Status> failed_;
  std::unique_ptr<Autoscaler> autoscaler_;
};

TEST_F(AutoscalerTest, RecordsANodeBeforeTheProviderIsAskedForIt) {
  begin();
  pending(1);
  const std::vector<NodeRecord> records = asked_record();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].phase, NodePhase::kWanted);
  EXPECT_TRUE(records[0].id.starts_with("w-")) << records[0].id;
  run_on(loop_, [&] { EXPECT_TRUE(provider_->additions.empty()); });
  node_.answer<control::KvPut>();
  ASSERT_TRUE(waits_for([&] { return !provider_->additions.empty(); }));
  run_on(loop_, [&] {
    const NodeRequest& asked = provider_->additions[0];
    EXPECT_EQ(asked.id, records[0].id);
    EXPECT_EQ(asked.type.name, "w");
    EXPECT_EQ(asked.labels.at("zone"), "a");
    EXPECT_EQ(asked.labels.at(std::string(kAutoscalerIdLabel)), asked.id);
  });
  answer(records[0].id);
  EXPECT_EQ(recorded().at(0).phase, NodePhase::kStarting);
  EXPECT_TRUE(looks_again());
  run_on(loop_, [&] { EXPECT_EQ(provider_->additions.size(), 1u) << "it was asked for once"; });
}

TEST_F(AutoscalerTest, DoesNothingThatTheHeadHasNotRecorded) {
  begin();
  pending(1);
  const std::string id = asked_record().at(0).id;
  node_.answer<control::KvPut>(runtime::unavailable("the head is away"));
  const std::vector<NodeRecord> again = asked_record();
  run_on(loop_, [&] { EXPECT_TRUE(provider_->additions.empty()); });
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].id, id) << "the same node";
  node_.answer<control::KvPut>();
  EXPECT_TRUE(waits_for([&] { return provider_->additions.size() == 1; }));
}

TEST_F(AutoscalerTest, GoesOnWithWhatAnEarlierOneHadRecorded) {
  begin({{.id = "w-1", .type = "w", .phase = NodePhase::kWanted},
         {.id = "w-2", .type = "w", .phase = NodePhase::kRemoving}});
  pending(1);
  ASSERT_TRUE(waits_for(
      [&] { return provider_->additions.size() == 1 && provider_->removals.size() == 1; }));
  run_on(loop_, [&] {
    EXPECT_EQ(provider_->additions[0].id, "w-1") << "the provider may have it already";
    EXPECT_EQ(provider_->removals[0], "w-2");
  });
  EXPECT_EQ(node_.waiting<control::KvPut>(), 0u) << "the records are the same";
  answer("w-2");
  EXPECT_EQ(recorded().size(), 1u);
}

TEST_F(AutoscalerTest, RecordsThatCannotBeReadEndIt) {
  make();
  node_.next<control::KvGet>();
  node_.answer<control::KvGet>(runtime::ControlAnswer(std::string("no JSON")));
  ASSERT_TRUE(waits_for([&] { return failed_.has_value(); }));
  EXPECT_EQ(failed_->code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_EQ(looks(), 0u);
}

TEST_F(AutoscalerTest, WaitsForAHeadThatIsAway) {
  make();
  node_.next<control::KvGet>();
  node_.answer<control::KvGet>(runtime::unavailable("the head is away"));
  node_.next<control::KvGet>();
  EXPECT_EQ(looks(), 0u) << "it does not know what there is";
  {
    std::lock_guard lock(mutex_);
    is_head_away_ = true;
  }
  node_.answer<control::KvGet>(runtime::not_found("no such pair"));
  EXPECT_TRUE(looks_again());
  pending(1);
  EXPECT_TRUE(looks_again());
  EXPECT_EQ(node_.waiting<control::KvPut>(), 0u);
  {
    std::lock_guard lock(mutex_);
    is_head_away_ = false;
  }
  EXPECT_EQ(recorded().size(), 1u);
}

TEST_F(AutoscalerTest, AnIdleNodeLeavesTheClusterBeforeItsMachineIsRemoved) {
  config_.idle_timeout = 1ms;
  begin();
  const std::string id = grown();
  EXPECT_EQ(recorded().at(0).phase, NodePhase::kRetiring);
  const auto drain = node_.next<control::DrainNode>();
  EXPECT_EQ(drain.node, joined());
  EXPECT_TRUE(drain.if_idle);
  EXPECT_EQ(drain.time, NodePlanner::kDrainTime);
  EXPECT_TRUE(drain.reason.starts_with("the autoscaler removes it: idle for")) << drain.reason;
  node_.answer<control::DrainNode>();
  EXPECT_TRUE(looks_again());
  run_on(loop_, [&] { EXPECT_TRUE(provider_->removals.empty()) << "it is there still"; });
  leave();
  EXPECT_EQ(recorded().at(0).phase, NodePhase::kRemoving);
  ASSERT_TRUE(waits_for([&] { return !provider_->removals.empty(); }));
  answer(id);
  EXPECT_TRUE(recorded().empty());
}

TEST_F(AutoscalerTest, ANodeThatGotWorkMeanwhileStays) {
  config_.idle_timeout = 1ms;
  begin();
  grown();
  EXPECT_EQ(recorded().at(0).phase, NodePhase::kRetiring);
  node_.next<control::DrainNode>();
  {
    std::lock_guard lock(mutex_);
    demand_.nodes.back().actors = 1;
  }
  node_.answer<control::DrainNode>(runtime::resource_exhausted("actor A runs there"));
  EXPECT_EQ(recorded().at(0).phase, NodePhase::kJoined);
  EXPECT_TRUE(looks_again());
  run_on(loop_, [&] { EXPECT_TRUE(provider_->removals.empty()); });
}

TEST_F(AutoscalerTest, WhatAFailedAdditionHasLeftIsRemoved) {
  begin();
  pending(1);
  const std::string id = recorded().at(0).id;
  ASSERT_TRUE(waits_for([&] { return provider_->additions.size() == 1; }));
  answer(id, runtime::unavailable("the cloud is busy"));
  EXPECT_EQ(recorded().at(0).phase, NodePhase::kRemoving);
  EXPECT_TRUE(waits_for([&] { return provider_->removals == std::vector<std::string>{id}; }));
}

TEST_F(AutoscalerTest, ANodeOfATypeThatIsGoneIsRemovedInsteadOfAdded) {
  begin({{.id = "old-1", .type = "old", .phase = NodePhase::kWanted}});
  EXPECT_EQ(recorded().at(0).phase, NodePhase::kRemoving);
  ASSERT_TRUE(waits_for([&] { return !provider_->removals.empty(); }));
  run_on(loop_, [&] {
    EXPECT_EQ(provider_->removals[0], "old-1");
    EXPECT_TRUE(provider_->additions.empty());
  });
}

TEST_F(AutoscalerTest, RemovesWhatTheProviderHasAndNoRecordNames) {
  begin();
  ASSERT_TRUE(waits_for([&] { return provider_->lists == 1; }));
  run_on(loop_, [&] { provider_->listed(std::vector<std::string>{"w-stray"}); });
  const std::vector<NodeRecord> records = recorded();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].id, "w-stray");
  EXPECT_EQ(records[0].phase, NodePhase::kRemoving);
  EXPECT_TRUE(waits_for([&] { return provider_->removals.size() == 1; }));
  EXPECT_TRUE(looks_again());
  run_on(loop_, [&] { EXPECT_EQ(provider_->lists, 1) << "the next one is due in half a minute"; });
}

TEST_F(AutoscalerTest, TellsItsStatus) {
  begin();
  std::vector<std::string> told;
  ASSERT_TRUE(support::eventually([&] {
    std::lock_guard lock(mutex_);
    told = statuses_;
    return !told.empty();
  }));
  const auto status = nlohmann::json::parse(told[0]);
  EXPECT_EQ(status.at("config"), "nodes.yaml");
  EXPECT_GT(status.at("reported_at_ms"), 0);
}

TEST_F(AutoscalerTest, StopsByRemovingWhatItHasAdded) {
  begin();
  const std::string id = grown();
  bool is_done = false;
  run_on(loop_, [&] {
    autoscaler_->stop([&] { is_done = true; });
    autoscaler_->stop([] { ADD_FAILURE() << "it stops once"; });
    EXPECT_EQ(provider_->abandoned, 1);
    EXPECT_EQ(provider_->removals, std::vector<std::string>{id});
  });
  const auto drain = node_.next<control::DrainNode>();
  EXPECT_EQ(drain.node, joined());
  EXPECT_FALSE(drain.if_idle) << "whatever it runs";
  answer(id);
  EXPECT_TRUE(recorded().empty());
  EXPECT_TRUE(waits_for([&] { return is_done; }));
  run_on(loop_, [&] { EXPECT_EQ(autoscaler_->left(), ""); });
}

TEST_F(AutoscalerTest, NodesThatEndWithTheClusterNeedNoDrain) {
  begin();
  const std::string id = grown();
  bool is_done = false;
  run_on(loop_, [&] {
    provider_->ends_with_it = true;
    autoscaler_->stop([&] { is_done = true; });
    EXPECT_TRUE(provider_->removals.empty());
  });
  EXPECT_TRUE(waits_for([&] { return is_done; }));
  EXPECT_EQ(node_.waiting<control::DrainNode>(), 0u);
}

TEST_F(AutoscalerTest, AnAdditionThatIsRecordedAsItStopsIsNotMade) {
  begin();
  pending(1);
  const std::string id = asked_record().at(0).id;
  run_on(loop_, [&] { autoscaler_->stop([] {}); });
  node_.answer<control::KvPut>();
  ASSERT_TRUE(waits_for([&] { return provider_->removals == std::vector<std::string>{id}; }))
      << "it is not known to this provider, which is no error";
  answer(id);
  EXPECT_TRUE(recorded().empty());
  run_on(loop_, [&] { EXPECT_TRUE(provider_->additions.empty()); });
}

}  // namespace
}  // namespace placement
