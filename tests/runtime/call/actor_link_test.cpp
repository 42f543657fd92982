#include "runtime/call/actor_link.h"

#include <gtest/gtest.h>

#include <optional>

#include "runtime/call/worker_link.h"
#include "runtime/transport/channel.h"

namespace runtime {
namespace {

/// Something to point at: the link compares these, and looks into none.
template <class T>
std::shared_ptr<T> opaque() {
  struct alignas(T) Place {
    std::byte bytes[sizeof(T)];
  };
  auto place = std::make_shared<Place>();
  auto* as_t = reinterpret_cast<T*>(place.get());
  return std::shared_ptr<T>(std::move(place), as_t);
}

struct FakeRequests final : ActorLink::Requests {
  std::shared_ptr<Channel> connect_to(WorkerLink& worker) override {
    connected_to = &worker;
    return open;
  }
  void ask_cause(CauseQuestion asked) override { question = std::move(asked); }
  void ask_address() override { ++addresses_asked; }
  void pause(std::chrono::milliseconds time) override { pauses.push_back(time); }

  std::shared_ptr<Channel> open;
  WorkerLink* connected_to = nullptr;
  std::optional<CauseQuestion> question;
  int addresses_asked = 0;
  std::vector<std::chrono::milliseconds> pauses;
};

struct ActorLinkTest : ::testing::Test {
  std::shared_ptr<WorkerLink> worker = opaque<WorkerLink>();
  std::shared_ptr<Channel> channel = opaque<Channel>();
  FakeRequests requests;
  ActorLink link{requests, worker, 7};

  static ActorState state_of(ActorPhase phase, std::uint64_t incarnation, std::uint32_t restarts) {
    ActorState state;
    state.phase = phase;
    state.incarnation = incarnation;
    state.restarts = restarts;
    return state;
  }
  void connect() {
    requests.open = channel;
    link.open();
  }
};

TEST_F(ActorLinkTest, TakesCallsOnceConnected) {
  link.open();
  EXPECT_EQ(requests.connected_to, worker.get());
  EXPECT_TRUE(link.is_connecting_to(worker.get()));
  EXPECT_FALSE(link.takes_calls());
  link.set_connected(channel);
  EXPECT_TRUE(link.takes_calls());
  EXPECT_EQ(link.channel(), channel);
}

TEST_F(ActorLinkTest, UsesAConnectionThatIsOpen) {
  connect();
  EXPECT_TRUE(link.takes_calls());
}

TEST_F(ActorLinkTest, FindsARestartedActorBeforeItConnects) {
  connect();
  link.ask(unavailable("lost"));
  EXPECT_TRUE(link.is_asking());
  EXPECT_EQ(link.channel(), nullptr);
  ASSERT_TRUE(requests.question);
  EXPECT_EQ(requests.question->incarnation, 7u);
  EXPECT_FALSE(requests.question->refused);
  link.on_cause(*requests.question, true, true);
  EXPECT_TRUE(link.is_idle());
  link.open();
  EXPECT_TRUE(link.is_resolving());
  EXPECT_EQ(requests.addresses_asked, 1);
  EXPECT_TRUE(link.move_to(opaque<WorkerLink>(), 8));
  link.on_address({});
  link.open();
  EXPECT_TRUE(link.takes_calls());
  EXPECT_EQ(link.incarnation(), 8u);
}

TEST_F(ActorLinkTest, PausesLongerEachTimeUntilAReplyComes) {
  using namespace std::chrono_literals;
  const auto fail = [&] {
    link.ask(unavailable("lost"));
    link.on_cause(*requests.question, false, true);
    link.open();
    EXPECT_FALSE(link.takes_calls()) << "it pauses";
    link.on_pause_over();
    EXPECT_TRUE(link.is_idle());
  };
  fail();
  fail();
  link.on_reply();
  fail();
  EXPECT_EQ(requests.pauses, (std::vector<std::chrono::milliseconds>{10ms, 20ms, 10ms}));
}

TEST_F(ActorLinkTest, DoesNotPauseWhenNoCallWaits) {
  link.ask(unavailable("lost"));
  link.on_cause(*requests.question, false, false);
  EXPECT_TRUE(link.is_idle());
  EXPECT_TRUE(requests.pauses.empty());
}

TEST_F(ActorLinkTest, AnOldPauseDoesNotEndWhatCameAfterIt) {
  link.ask(unavailable("lost"));
  link.on_cause(*requests.question, false, true);
  link.reset();  // the actor was found elsewhere
  connect();
  link.on_pause_over();
  EXPECT_TRUE(link.is_open());
}

TEST_F(ActorLinkTest, CallsOfEarlierIncarnationsGoFirst) {
  connect();
  link.on_sent();
  link.on_sent();
  EXPECT_FALSE(link.move_to(worker, 8)) << "the same process";
  EXPECT_FALSE(link.takes_calls());
  EXPECT_FALSE(link.on_answered(7));
  EXPECT_TRUE(link.on_answered(7));
  EXPECT_TRUE(link.takes_calls());
  link.on_sent();
  EXPECT_FALSE(link.on_answered(8));
}

TEST_F(ActorLinkTest, ADrainedConnectionIsNotThatOfTheNextIncarnation) {
  connect();
  link.set_drained(channel);
  EXPECT_TRUE(link.is_drained(channel));
  link.move_to(worker, 8);
  EXPECT_FALSE(link.is_drained(channel));
}

TEST_F(ActorLinkTest, AnIncarnationThatRefusesIsAskedAboutUntilItHasEnded) {
  connect();
  link.ask(cancelled("draining"), 7);
  ASSERT_TRUE(requests.question);
  EXPECT_TRUE(requests.question->refused);
  EXPECT_TRUE(link.is_ending(*requests.question, state_of(ActorPhase::kAlive, 7, 0)));
  EXPECT_FALSE(link.is_ending(*requests.question, state_of(ActorPhase::kStarting, 7, 1)));
  EXPECT_FALSE(link.is_ending(*requests.question, state_of(ActorPhase::kAlive, 8, 1)));
  EXPECT_FALSE(link.is_ending(*requests.question, unavailable("no head")));
}

TEST_F(ActorLinkTest, ClosesWhenTheActorCannotBeFound) {
  link.ask(unavailable("lost"));
  link.on_cause(*requests.question, true, true);
  link.open();
  link.on_address(deadline_exceeded("the head is slow"));
  EXPECT_FALSE(link.is_closed());
  link.open();
  EXPECT_EQ(requests.addresses_asked, 2);
  link.on_address(actor_died("gone"));
  EXPECT_TRUE(link.is_closed());
  EXPECT_EQ(link.closed().message(), "gone");
}

TEST_F(ActorLinkTest, JudgesByTheActorsState) {
  const CauseQuestion question{7, unavailable("broken pipe"), false};
  const auto verdict = [&](const Result<ActorState>& state) {
    return judge(question, state, "Counter 7f3a");
  };
  EXPECT_TRUE(verdict(state_of(ActorPhase::kDead, 7, 0)).has_ended);
  EXPECT_TRUE(verdict(state_of(ActorPhase::kPending, 7, 1)).restarts);
  EXPECT_TRUE(verdict(state_of(ActorPhase::kAlive, 8, 1)).restarts);
  const CauseVerdict forgotten = verdict(not_found("no such actor"));
  EXPECT_TRUE(forgotten.has_ended);
  EXPECT_EQ(forgotten.why.message(), "actor Counter 7f3a has ended: broken pipe");
  const CauseVerdict alive = verdict(state_of(ActorPhase::kAlive, 7, 0));
  EXPECT_FALSE(alive.has_ended || alive.restarts);
  EXPECT_EQ(alive.why.message(), "connection lost, the call may have run: broken pipe");
  EXPECT_FALSE(verdict(unavailable("no head")).has_ended);
}

}  // namespace
}  // namespace runtime
