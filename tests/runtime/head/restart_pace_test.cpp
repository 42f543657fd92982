// The pauses between an actor's incarnations.
#include "runtime/head/restart_pace.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class RestartPaceTest : public PartTest {
 protected:
  std::chrono::milliseconds next(bool moves = false) { return pace_.next_delay(actor_, moves); }

  const ActorId actor_ = ActorId::random();
  RestartPace pace_{context_};
};

TEST_F(RestartPaceTest, DoublesForOneThatKeepsEndingSoonUpToALimit) {
  EXPECT_EQ(next(), 0ms);
  EXPECT_EQ(next(), options_.restart_delay_first);
  EXPECT_EQ(next(), 2 * options_.restart_delay_first);
  for (int i = 0; i < 40; ++i) next();
  EXPECT_EQ(next(), options_.restart_delay_max);
}

TEST_F(RestartPaceTest, BeginsAgainAfterACalmTime) {
  next();
  next();
  time_ += options_.restart_calm + options_.restart_delay_first;
  EXPECT_EQ(next(), 0ms);
}

TEST_F(RestartPaceTest, AMoveIsNoFault) {
  next();
  next();
  EXPECT_EQ(next(true), 0ms);
  EXPECT_EQ(next(), options_.restart_delay_first);
}

TEST_F(RestartPaceTest, ForgetsTheDead) {
  next();
  next();
  pace_.forget(actor_);
  EXPECT_EQ(next(), 0ms);
}

}  // namespace
}  // namespace runtime
