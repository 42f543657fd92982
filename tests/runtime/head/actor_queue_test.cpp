// The actors that wait for a place: who looks, in which order, and who need not.
#include "runtime/head/actor_queue.h"

#include <algorithm>
#include <string>

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ActorQueueTest : public PartTest {
 protected:
  using Actors = std::vector<ActorId>;

  ActorQueueTest() : job_(add_job(add_node(4))) {}

  /// Waits for that number of CPUs: those that ask for the same are alike.
  ActorId wait(double cpus, Deadline not_before = Deadline::min()) {
    const ActorId actor = add_actor(job_, cpus).actor;
    queue_.add(actor, time_ + 1h, not_before);
    return actor;
  }
  /// A look while there is room for `room` actors; those that looked.
  Actors look(std::size_t room = 0) {
    Actors looked;
    queue_.place_all([&](ActorId actor, Deadline) {
      looked.push_back(actor);
      if (room == 0) {
        context_.commit(command::ActorWaits{actor, "no room for " + actor.short_hex()});
        return false;
      }
      --room;
      return true;
    });
    return looked;
  }
  std::string reason(ActorId actor) const { return tables_.actors().find(actor)->pending_reason; }
  void refresh() {
    ASSERT_LT(queue_.next_tick(), Deadline::max());
    time_ = queue_.next_tick();
    queue_.tick(time_);
  }

  const JobId job_;
  ActorQueue queue_{context_};
};

TEST_F(ActorQueueTest, TheyLookInOrderOfArrivalUntilTheyHaveAPlace) {
  const ActorId first = wait(1), second = wait(2), third = wait(3);
  EXPECT_EQ(look(), (Actors{first, second, third}));
  EXPECT_EQ(look(1), (Actors{first, second, third}));
  EXPECT_EQ(queue_.actors(), (Actors{second, third}));
  const ActorId fourth = wait(1);
  EXPECT_EQ(look(), (Actors{second, third, fourth}));
  queue_.remove(third);
  queue_.remove(first);  // does not wait any more
  EXPECT_EQ(look(2), (Actors{second, fourth}));
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(ActorQueueTest, ThePlaceIsWantedBeforeTheDeadline) {
  const ActorId actor = wait(1);
  queue_.extend(actor, time_ + 2h);
  queue_.extend(actor, time_ + 1s);  // a caller with less time takes none away
  Deadline asked;
  queue_.place_all([&](ActorId, Deadline deadline) {
    asked = deadline;
    return true;
  });
  EXPECT_EQ(asked, time_ + 2h);
}

TEST_F(ActorQueueTest, ThoseThatAreAlikeLookUntilOneFindsNoRoom) {
  const ActorId first = wait(1), second = wait(1), third = wait(1), other = wait(2);
  const ActorId last = wait(1);
  EXPECT_EQ(look(1), (Actors{first, second, other}));
  EXPECT_EQ(queue_.actors(), (Actors{second, third, other, last})) << "in their old order";
  EXPECT_EQ(look(2), (Actors{second, third, other, last}));
  EXPECT_EQ(queue_.actors(), (Actors{other, last}));
}

TEST_F(ActorQueueTest, WhatAsksForAnotherPlaceIsNotAlike) {
  ActorSpec plain;
  plain.class_name = "Counter";
  plain.resources = {{"CPU", 1}};
  std::vector<ActorSpec> specs(6, plain);
  specs[1].class_name = "Adder";
  specs[2].labels = {{"zone", "a"}};
  specs[3].node = NodeId::random();
  specs[4].node = specs[3].node;
  specs[4].node_is_preferred = true;
  specs[5].bundle = BundleSlot{GroupId::random(), 0};
  specs.push_back(specs[5]);
  specs.back().bundle->index = 1;
  for (ActorSpec& spec : specs) {
    spec.actor = ActorId::random();
    queue_.add(add_actor(job_, spec).actor, time_ + 1h);
  }
  EXPECT_EQ(look().size(), specs.size());
}

TEST_F(ActorQueueTest, TheOthersGetTheReasonOfOneALittleLater) {
  const ActorId first = wait(1), second = wait(1), other = wait(2);
  EXPECT_EQ(queue_.next_tick(), Deadline::max());
  look();
  EXPECT_EQ(reason(second), "");
  const Deadline due = queue_.next_tick();
  time_ = due - 1ms;
  look();
  EXPECT_EQ(queue_.next_tick(), due) << "looks that follow each other do not put it off";
  queue_.tick(time_);
  EXPECT_EQ(reason(second), "") << "too early";
  refresh();
  EXPECT_EQ(reason(second), reason(first));
  EXPECT_EQ(reason(other), "no room for " + other.short_hex());
  EXPECT_EQ(queue_.next_tick(), Deadline::max());
}

TEST_F(ActorQueueTest, WhatWaitsNoMoreGivesNoReason) {
  const ActorId first = wait(1), second = wait(1), third = wait(1);
  context_.commit(command::ActorWaits{second, "an earlier reason"});
  look();
  queue_.remove(first);
  context_.commit(command::ActorDead{first, {}});
  refresh();
  EXPECT_EQ(reason(second), "an earlier reason");
  look();
  refresh();
  EXPECT_EQ(reason(third), reason(second)) << "which has looked itself now";
}

TEST_F(ActorQueueTest, OneThatIsHeldBackHoldsUpNoOther) {
  const ActorId held = wait(1, time_ + 100ms), free = wait(1);
  EXPECT_EQ(look(), Actors{free});
  EXPECT_EQ(queue_.next_tick(), Deadline::max()) << "it has its own reason";
  EXPECT_FALSE(queue_.end_pauses(time_ + 99ms));
  time_ += 100ms;
  EXPECT_TRUE(queue_.end_pauses(time_));
  EXPECT_FALSE(queue_.end_pauses(time_)) << "it has ended";
  EXPECT_EQ(look(1), (Actors{held, free}));
}

TEST_F(ActorQueueTest, KnowsWhenItHasWorkNext) {
  EXPECT_EQ(queue_.earliest(), Deadline::max());
  const ActorId actor = wait(1);
  EXPECT_EQ(queue_.earliest(), time_ + 1h);
  queue_.add(add_actor(job_, 2).actor, Deadline::max(), time_ + 1s);
  EXPECT_EQ(queue_.earliest(), time_ + 1s) << "the end of a pause";
  queue_.end_pauses(time_ + 1s);
  EXPECT_EQ(queue_.earliest(), time_ + 1h);
  queue_.remove(actor);
  EXPECT_EQ(queue_.earliest(), Deadline::max());
}

TEST_F(ActorQueueTest, FindsTheFirstThatIsLate) {
  const ActorId patient = add_actor(job_, 1).actor;
  queue_.add(patient, time_ + 2s);
  const ActorId late = add_actor(job_, 2).actor, later = add_actor(job_, 3).actor;
  queue_.add(late, time_ + 1s);
  queue_.add(later, time_ + 1s);
  EXPECT_EQ(queue_.find_late(time_ + 1s - 1ns), std::nullopt);
  EXPECT_EQ(queue_.find_late(time_ + 1s), late);
  queue_.remove(late);
  EXPECT_EQ(queue_.find_late(time_ + 1s), later);
  EXPECT_EQ(queue_.find_late(time_ + 2s), patient);
}

}  // namespace
}  // namespace runtime
