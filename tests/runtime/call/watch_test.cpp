#include "runtime/call/watch.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/call/query_fixture.h"
#include "tests/support/blocking_thread.h"

namespace runtime {
namespace {

class WatchTest : public test::QueryTest {
 protected:
  /// Notes what a callback is told, in short.
  class Told {
   public:
    void note(std::string what) {
      std::lock_guard lock(mutex_);
      all_.push_back(std::move(what));
    }
    /// Waits for N of them.
    std::vector<std::string> first(std::size_t count) {
      EXPECT_TRUE(support::eventually([&] {
        std::lock_guard lock(mutex_);
        return all_.size() >= count;
      }));
      std::lock_guard lock(mutex_);
      return all_;
    }

   private:
    std::mutex mutex_;
    std::vector<std::string> all_;
  };
  using Texts = std::vector<std::string>;

  ~WatchTest() override { callbacks_.stop(); }

  Watch watch_actor() {
    return Watch::on_actor(queries_, actor_, [this](const ActorEvent& event) {
      using Kind = ActorEvent::Kind;
      told_.note(event.kind == Kind::kDead    ? "dead: " + event.state.death.text
                 : event.kind == Kind::kAlive ? "alive"
                                              : "restarting: " + event.state.death.text);
    });
  }
  Watch watch_nodes() {
    return Watch::on_nodes(queries_, [this](const NodeEvent& event) {
      static constexpr const char* kKinds[] = {"joined ", "left ", "draining ", "lost "};
      told_.note(kKinds[static_cast<int>(event.kind)] + event.node.hostname +
                 (event.why.empty() ? "" : ": " + event.why));
    });
  }
  Watch watch_published() {
    return Watch::on_published(queries_, "weights", "team", [this](const PublishedEvent& event) {
      told_.note(event.name + "@" + std::to_string(event.version));
    });
  }
  static ActorState ended(ActorPhase phase, std::uint64_t version, std::uint32_t restarts,
                          const std::string& why) {
    ActorState state = actor_state(phase, version, restarts);
    state.death.text = why;
    return state;
  }
  static NodeInfo node(const std::string& name, std::uint64_t joined_as) {
    NodeInfo info;
    info.node = NodeId::random();
    info.hostname = name;
    info.joined_as = joined_as;
    return info;
  }
  /// Waits for the next question about the nodes, and answers it; which version was known.
  std::uint64_t answer_nodes(std::uint64_t version, std::vector<NodeInfo> nodes,
                             std::vector<NodeDeparture> departed = {}) {
    const auto asked = head_.next<control::WatchNodes>();
    head_.answer<control::WatchNodes>(
        ControlAnswer{control::NodeList{version, std::move(nodes), std::move(departed)}});
    return asked.version;
  }

  const ActorId actor_ = ActorId::random();
  Told told_;
};

TEST_F(WatchTest, EveryChangeOfAnActorIsToldOnce) {
  const Watch watch = watch_actor();
  ASSERT_TRUE(watch.is_active());
  EXPECT_EQ(answer_about_actor(actor_state(ActorPhase::kAlive, 1)), (control::WatchActor{actor_}));
  answer_about_actor(ended(ActorPhase::kPending, 2, 1, "it crashed"));
  answer_about_actor(actor_state(ActorPhase::kStarting, 3, 1));
  EXPECT_EQ(answer_about_actor(actor_state(ActorPhase::kAlive, 4, 1)).version, 3u);
  answer_about_actor(ended(ActorPhase::kDead, 5, 1, "it was killed"));
  EXPECT_EQ(told_.first(3), (Texts{"restarting: it crashed", "alive", "dead: it was killed"}));
}

TEST_F(WatchTest, ARestartBetweenTwoAnswersIsTold) {
  const Watch watch = watch_actor();
  answer_about_actor(actor_state(ActorPhase::kAlive, 1));
  answer_about_actor(ended(ActorPhase::kAlive, 4, 1, "it crashed"));
  EXPECT_EQ(told_.first(2), (Texts{"restarting: it crashed", "alive"}));
}

TEST_F(WatchTest, TimeWithoutNewsIsNoneAndAForgottenActorIsDead) {
  const Watch watch = watch_actor();
  answer_about_actor(actor_state(ActorPhase::kAlive, 7));
  answer_about_actor(deadline_exceeded("nothing has happened"));
  EXPECT_EQ(answer_about_actor(not_found("there is no such actor")).version, 7u);
  EXPECT_EQ(told_.first(1), Texts{"dead: there is no such actor"});
}

TEST_F(WatchTest, WhatNodesDoIsToldInItsOrder) {
  const Watch watch = watch_nodes();
  NodeInfo one = node("one", 2);
  const NodeInfo two = node("two", 1), three = node("three", 6);
  answer_nodes(2, {one, two});
  one.drain = NodeDrain{"preemption", std::chrono::milliseconds(1000), {}, 4};
  EXPECT_EQ(
      answer_nodes(7, {one}, {{three, "its lease is over", false, 7}, {two, "idle", true, 5}}), 2u);
  EXPECT_EQ(told_.first(6),
            (Texts{"joined two", "joined one", "draining one: preemption", "left two: idle",
                   "joined three", "lost three: its lease is over"}));
  one.drain->version = 8;  // its deadline moves
  answer_nodes(8, {one}, {{three, "its lease is over", false, 7}});
  EXPECT_EQ(told_.first(7).back(), "draining one: preemption");
}

TEST_F(WatchTest, NodesThatAClusterStartedAgainDoesNotKnowAreLost) {
  const Watch watch = watch_nodes();
  answer_nodes(9, {node("one", 2)});
  answer_nodes(1, {node("two", 1)});
  EXPECT_EQ(told_.first(3),
            (Texts{"joined one", "lost one: it is not in the cluster any more", "joined two"}));
  EXPECT_EQ(answer_nodes(2, {}), 1u);
}

TEST_F(WatchTest, AsksForAVersionThatIsNewerThanTheLast) {
  const Watch watch = watch_published();
  EXPECT_EQ(answer_version(PublishedObject{"weights", 5, std::string()}),
            (control::FindPublished{"team", "weights", 1, false, true}));
  answer_version(deadline_exceeded("no process has published it"));
  EXPECT_EQ(answer_version(PublishedObject{"weights", 8, std::string()}).version, 6u);
  EXPECT_EQ(told_.first(2), (Texts{"weights@5", "weights@8"}));
}

TEST_F(WatchTest, AVersionThatIsLostIsNoEnd) {
  const Watch watch = watch_published();
  answer_version(object_lost("its nodes are gone"));
  answer_version(PublishedObject{"weights", 2, std::string()});
  EXPECT_EQ(told_.first(1), Texts{"weights@2"});
}

TEST_F(WatchTest, StopWaitsForTheCallbackThatRunsAndNoOtherFollows) {
  std::promise<void> running, end;
  int calls = 0;
  Watch watch = Watch::on_published(queries_, "weights", "", [&](const PublishedEvent&) {
    if (++calls > 1) return;
    running.set_value();
    end.get_future().wait();
  });
  answer_version(PublishedObject{"weights", 1, std::string()});
  running.get_future().wait();
  answer_version(PublishedObject{"weights", 2, std::string()});
  (void)head_.next<ObjectControl>();  // the second event waits for the first
  support::BlockingThread stopping;
  std::thread stopper([&] {
    stopping.begin();
    watch.stop();
    EXPECT_EQ(calls, 1);
  });
  EXPECT_TRUE(stopping.is_blocked());
  end.set_value();
  stopper.join();
  std::promise<void> next;
  callbacks_.run([&] { next.set_value(); });
  next.get_future().wait();
  EXPECT_EQ(calls, 1);
}

TEST_F(WatchTest, ACallbackMayStopItsWatch) {
  std::promise<void> stopped;
  Watch watch;
  std::promise<void> made;
  watch = Watch::on_published(queries_, "weights", "", [&](const PublishedEvent&) {
    made.get_future().wait();
    watch.stop();
    stopped.set_value();
  });
  made.set_value();
  answer_version(PublishedObject{"weights", 1, std::string()});
  stopped.get_future().wait();
  EXPECT_FALSE(watch.is_active());
}

}  // namespace
}  // namespace runtime
