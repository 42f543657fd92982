// Questions to the head without a cluster: the node is a fake, and the test answers for the head.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "runtime/call/callback_thread.h"
#include "runtime/call/object_table.h"
#include "runtime/call/query_context.h"
#include "tests/runtime/call/fake_objects.h"
#include "tests/runtime/control/fake_node.h"

namespace runtime::test {

class QueryTest : public ::testing::Test {
 protected:
  ~QueryTest() override {
    queries_.reset();
    node_.reset();
    run_on(loop_, [] {});  // what that has ended
  }
  /// Waits for the next question about the actor, and answers it.
  control::WatchActor answer_about_actor(const Result<ActorState>& state) {
    const auto asked = head_.next<control::WatchActor>();
    head_.answer<control::WatchActor>(state.ok() ? Result<ControlAnswer>(ControlAnswer{*state})
                                                 : state.status());
    return asked;
  }
  /// The same about a published version.
  control::FindPublished answer_version(const Result<PublishedObject>& found) {
    const ObjectControl asked = head_.next<ObjectControl>();
    head_.answer<ObjectControl>(
        found.ok() ? Result<ControlAnswer>(ControlAnswer{ObjectControlAnswer{*found}})
                   : found.status());
    const auto* question = std::get_if<control::FindPublished>(&asked);
    EXPECT_TRUE(question);
    return question ? *question : control::FindPublished();
  }
  static ActorState actor_state(ActorPhase phase, std::uint64_t version,
                                std::uint32_t restarts = 0) {
    ActorState state;
    state.class_name = "Counter";
    state.phase = phase;
    state.version = version;
    state.restarts = restarts;
    return state;
  }

  FakeNode head_;
  EventLoop loop_;
  std::unique_ptr<NodeClient> node_ = head_.connect(loop_, Role::kDriver);
  FakeObjectContext objects_{loop_};
  ObjectTable object_table_;
  CallbackThread callbacks_;
  QueryContextPtr queries_ = std::make_shared<const QueryContext>(
      QueryContext{*node_, *objects_.get(), object_table_, callbacks_});
};

}  // namespace runtime::test
