// Queries and changes of a cluster: the request that the node gets, the answer that it gives.
#include "runtime/control/cluster_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/transport/blocking.h"
#include "tests/runtime/control/fake_node.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ClusterClientTest : public ::testing::Test {
 protected:
  template <class T>
  using Callback = NodeClient::Callback<T>;

  ~ClusterClientTest() override { client_.reset(); }
  static Deadline soon() { return deadline_after(20s); }

  /// What comes of a query once the node has answered this.
  template <class T, class Ask>
  Result<T> answered(Result<ControlAnswer> answer, Ask ask) {
    set_answer(std::move(answer));
    return wait_for<T>(loop_, soon(), [&](Callback<T> done) { ask(std::move(done)); });
  }
  template <class Ask>
  Status told(Result<ControlAnswer> answer, Ask ask) {
    set_answer(std::move(answer));
    return wait_done(loop_, soon(), [&](NodeClient::Done done) { ask(std::move(done)); });
  }
  /// The last request, which is expected to be of that kind.
  template <class T>
  T asked() {
    std::lock_guard lock(mutex_);
    const T* last = std::get_if<T>(&asked_);
    EXPECT_NE(last, nullptr) << "it was not asked for that";
    return last != nullptr ? *last : T();
  }

 private:
  void set_answer(Result<ControlAnswer> answer) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }

  std::mutex mutex_;  // guards what follows
  ControlRequest::Body asked_;
  Result<ControlAnswer> answer_ = ControlAnswer();

 protected:
  FakeNode node_{[this](const ControlRequest::Body& body, ControlAnswerer& answer) {
    std::lock_guard lock(mutex_);
    asked_ = body;
    answer(answer_);
    return true;
  }};
  EventLoop loop_;
  std::unique_ptr<NodeClient> client_ = node_.connect(loop_);
  ClusterClient cluster_{*client_};
};

TEST_F(ClusterClientTest, EachQueryHasItsOwnAnswer) {
  ClusterState state;
  state.cluster = ClusterId::random();
  EXPECT_EQ(
      answered<ClusterState>(ControlAnswer(state), [&](auto done) { cluster_.state(soon(), done); })
          .value_or({}),
      state);
  (void)asked<control::QueryCluster>();

  Demand demand;
  demand.unlisted = 4;
  EXPECT_EQ(
      answered<Demand>(ControlAnswer(demand), [&](auto done) { cluster_.demand(soon(), done); })
          .value_or({}),
      demand);
  (void)asked<control::QueryDemand>();

  control::NodeList nodes;
  nodes.version = 8;
  EXPECT_EQ(answered<control::NodeList>(ControlAnswer(nodes),
                                        [&](auto done) { cluster_.watch_nodes(7, soon(), done); })
                .value_or({}),
            nodes);
  EXPECT_EQ(asked<control::WatchNodes>().version, 7u);

  ObjectList objects;
  objects.truncated = true;
  EXPECT_EQ(answered<ObjectList>(ControlAnswer(ObjectControlAnswer(objects)),
                                 [&](auto done) { cluster_.list_objects(soon(), done); })
                .value_or({}),
            objects);
  EXPECT_TRUE(std::holds_alternative<control::ListObjects>(asked<ObjectControl>()));

  const ObserveAnswer text = std::string("metrics");
  const auto seen = answered<ObserveAnswer>(ControlAnswer(text), [&](auto done) {
    cluster_.observe(control::ReadMetrics{}, soon(), done);
  });
  ASSERT_TRUE(seen.ok()) << seen.status().to_string();
  EXPECT_EQ(std::get<std::string>(*seen), "metrics");
  EXPECT_TRUE(std::holds_alternative<control::ReadMetrics>(asked<ObserveControl>()));
}

TEST_F(ClusterClientTest, OnlyAnIdleDrainAsksForAnIdleNode) {
  const NodeId node = NodeId::random();
  EXPECT_TRUE(told(ControlAnswer(), [&](auto done) {
                cluster_.drain_node(node, 5s, "maintenance", soon(), done);
              }).ok());
  EXPECT_EQ(asked<control::DrainNode>(), (control::DrainNode{node, 5s, "maintenance", false}));

  const Status busy = resource_exhausted("2 actors run there");
  EXPECT_EQ(
      told(busy, [&](auto done) { cluster_.drain_idle_node(node, 6s, "idle", soon(), done); }),
      busy);
  EXPECT_EQ(asked<control::DrainNode>(), (control::DrainNode{node, 6s, "idle", true}));
}

TEST_F(ClusterClientTest, APieceOfALogIsAskedForByItsFileAndThePlaceInIt) {
  const control::LogChunk chunk{.text = "a line\n", .next_offset = 84, .file = 3, .position = 184};
  EXPECT_EQ(answered<control::LogChunk>(ControlAnswer(chunk),
                                        [&](auto done) {
                                          cluster_.read_log("worker-7f.log", /*file=*/3,
                                                            /*offset=*/77, soon(), done);
                                        })
                .value_or({}),
            chunk);
  EXPECT_EQ(asked<control::ReadLog>(),
            (control::ReadLog{.name = "worker-7f.log", .offset = 77, .file = 3}));
}

TEST_F(ClusterClientTest, AChangedTokenGoesWithTheGraceOfThePresentOne) {
  EXPECT_TRUE(told(ControlAnswer(), [&](auto done) {
                cluster_.change_token("another secret", 90s, soon(), done);
              }).ok());
  EXPECT_EQ(asked<control::ChangeToken>(), (control::ChangeToken{"another secret", 90s}));
  EXPECT_TRUE(told(ControlAnswer(), [&](auto done) { cluster_.stop_node(soon(), done); }).ok());
  (void)asked<control::StopNode>();
}

TEST_F(ClusterClientTest, AnAnswerToAnotherQueryIsNone) {
  EXPECT_EQ(answered<Demand>(ControlAnswer(ClusterState()),
                             [&](auto done) { cluster_.demand(soon(), done); })
                .status()
                .code(),
            ErrorCode::kInternal);
  EXPECT_EQ(answered<ObjectList>(ControlAnswer(ObjectControlAnswer(ObjectLocation())),
                                 [&](auto done) { cluster_.list_objects(soon(), done); })
                .status()
                .code(),
            ErrorCode::kInternal);
}

}  // namespace
}  // namespace runtime
