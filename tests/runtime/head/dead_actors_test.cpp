// Dead actors are kept for a while, and then forgotten.
#include "runtime/head/dead_actors.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class DeadActorsTest : public PartTest {
 protected:
  DeadActorsTest() : job_(add_job(add_node(4))) {
    options_.dead_kept = 2;
    options_.dead_kept_max = 5;
    options_.dead_kept_for = 10s;
  }
  ActorId die() {
    const ActorId actor = add_actor(job_).actor;
    context_.commit(command::ActorDead{actor, {}});
    return actor;
  }
  /// One that this head sees die.
  ActorId die_now() {
    const ActorId actor = die();
    dead_.note_death();
    return actor;
  }
  std::size_t kept() const { return tables_.actors().dead(); }

  const JobId job_;
  DeadActors dead_{context_};
};

TEST_F(DeadActorsTest, TheLastOnesAreKeptAlways) {
  die_now();
  die_now();
  EXPECT_EQ(dead_.next_tick(), Deadline::max());
  time_ += 24h;
  dead_.tick(time_);
  EXPECT_EQ(kept(), 2u);
}

TEST_F(DeadActorsTest, OthersAreKeptForAsLongAsCallersTakeToAsk) {
  const Deadline died = time_;
  const ActorId first = die_now();
  time_ += 1s;
  die_now();
  const ActorId third = die_now();
  die_now();
  EXPECT_GE(dead_.next_tick(), died + 10s);
  dead_.tick(died + 10s - 1ns);
  EXPECT_EQ(kept(), 4u);
  dead_.tick(died + 10s);
  EXPECT_EQ(kept(), 3u);
  EXPECT_EQ(tables_.actors().find(first), nullptr) << "the one that died first";
  EXPECT_GE(dead_.next_tick(), died + 11s);
  dead_.tick(died + 11s);
  EXPECT_EQ(kept(), 2u);
  EXPECT_TRUE(tables_.actors().find(third));
  EXPECT_EQ(dead_.next_tick(), Deadline::max());
}

TEST_F(DeadActorsTest, ThereAreNeverMoreThanTheMost) {
  for (int i = 0; i < 8; ++i) die_now();
  dead_.tick(time_);
  EXPECT_EQ(kept(), 5u) << "though they have died just now";
  time_ += 10s;
  dead_.tick(time_);
  EXPECT_EQ(kept(), 2u);
}

TEST_F(DeadActorsTest, ThoseOfAnEarlierHeadGoFirstAndAtOnce) {
  for (int i = 0; i < 4; ++i) die();
  EXPECT_EQ(dead_.next_tick(), Deadline::max());
  const ActorId mine = die_now();
  dead_.tick(time_);
  EXPECT_EQ(kept(), 2u) << "when the others died is not known";
  EXPECT_TRUE(tables_.actors().find(mine));
  die_now();
  dead_.tick(time_);
  EXPECT_EQ(kept(), 2u);
  die_now();
  dead_.tick(time_);
  EXPECT_EQ(kept(), 3u) << "all of these died now";
}

}  // namespace
}  // namespace runtime
