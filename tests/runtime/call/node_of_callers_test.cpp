#include "runtime/call/node_of_callers.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "tests/runtime/control/fake_node.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class NodeOfCallersTest : public ::testing::Test {
 protected:
  ~NodeOfCallersTest() override { client_.reset(); }
  template <class T>
  using Answer = std::shared_ptr<std::optional<Result<T>>>;
  template <class T>
  static std::function<void(Result<T>)> into(const Answer<T>& answer) {
    return [answer](Result<T> result) { answer->emplace(std::move(result)); };
  }
  template <class T>
  Result<T> outcome(const Answer<T>& answer) {
    EXPECT_TRUE(comes_true(loop_, [&] { return answer->has_value(); }));
    return on_loop(loop_,
                   [&] { return answer->has_value() ? **answer : Result<T>(not_found("")); });
  }
  static Deadline soon() { return deadline_after(20s); }

  FakeNode node_;
  EventLoop loop_;
  std::unique_ptr<NodeClient> client_ = node_.connect(loop_, Role::kDriver);
  const ActorId actor_ = ActorId::random();
  NodeOfCallers callers_{loop_, *client_};
};

TEST_F(NodeOfCallersTest, AsksWhatBecameOfAnActor) {
  EXPECT_EQ(callers_.node_id(), node_.id);
  EXPECT_EQ(callers_.node_address(), node_.endpoint().to_string());
  const auto state = std::make_shared<std::optional<Result<ActorState>>>();
  callers_.state(actor_, 3, soon(), into<ActorState>(state));
  EXPECT_EQ(node_.next<control::QueryActor>(), (control::QueryActor{actor_, 3}));
  ActorState dead;
  dead.actor = actor_;
  dead.phase = ActorPhase::kDead;
  node_.answer<control::QueryActor>(ControlAnswer(dead));
  EXPECT_EQ(outcome<ActorState>(state).value_or({}), dead);
}

TEST_F(NodeOfCallersTest, AsksWhereAnActorIs) {
  const auto address = std::make_shared<std::optional<Result<ActorAddress>>>();
  callers_.resolve(actor_, soon(), into<ActorAddress>(address));
  EXPECT_EQ(node_.next<control::ResolveActor>().actor, actor_);
  node_.answer<control::ResolveActor>(not_found("no such actor"));
  EXPECT_EQ(outcome<ActorAddress>(address).status(), not_found("no such actor"));
}

TEST_F(NodeOfCallersTest, TellsTheBuilderOfAnActor) {
  callers_.tell_builder(actor_, {});
  EXPECT_EQ(node_.next<control::ConstructorAwaited>().actor, actor_);
}

TEST_F(NodeOfCallersTest, ConnectsWithWorkersAsItsProcess) {
  FakeNode worker;
  const auto connected = std::make_shared<std::optional<Result<std::shared_ptr<Channel>>>>();
  callers_.connect(worker.endpoint(), into<std::shared_ptr<Channel>>(connected));
  const Result<std::shared_ptr<Channel>> channel = outcome<std::shared_ptr<Channel>>(connected);
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  EXPECT_EQ((*channel)->peer().node, worker.id);
  run_on(loop_, [&] { (*channel)->close(cancelled("test over")); });
  worker.close();
  const auto refused = std::make_shared<std::optional<Result<std::shared_ptr<Channel>>>>();
  callers_.connect(worker.endpoint(), into<std::shared_ptr<Channel>>(refused));
  EXPECT_EQ(outcome<std::shared_ptr<Channel>>(refused).status().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace runtime
