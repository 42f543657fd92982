#include "rl/app/progress_line.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/support/terminal.h"
#include "tests/support/turned_clock.h"

namespace rl {
namespace {

using namespace std::chrono_literals;

constexpr const char* kEraseLine = "\r\033[K";

TEST(ProgressLine, WorkOfTwoSecondsAtMostShowsNothing) {
  support::TurnedClock clock;
  Terminal terminal(2);
  {
    ProgressLine line;
    line.show("begun");
    clock.turn(1999ms);
    line.show("almost done");
  }
  EXPECT_EQ(terminal.shown(), "");
}

TEST(ProgressLine, IsReplacedTenTimesASecondAtMostAndErasedAtTheEnd) {
  support::TurnedClock clock;
  Terminal terminal(2);
  {
    ProgressLine line;
    clock.turn(2s);
    line.show("one");
    EXPECT_EQ(terminal.shown(), std::string(kEraseLine) + "one");
    clock.turn(99ms);
    line.show("too soon");
    EXPECT_EQ(terminal.shown(), "");
    clock.turn(1ms);
    line.show("two");
    EXPECT_EQ(terminal.shown(), std::string(kEraseLine) + "two");
    EXPECT_DOUBLE_EQ(line.seconds(), 2.1);
  }
  EXPECT_EQ(terminal.shown(), kEraseLine);
}

// A name in the text may come from the hub.
TEST(ProgressLine, IsOneLineWhateverItsTextHas) {
  support::TurnedClock clock;
  Terminal terminal(2);
  ProgressLine line;
  clock.turn(2s);
  line.show("a\nb\x1b[2J");
  EXPECT_EQ(terminal.shown(), std::string(kEraseLine) + "a\\nb\\x1b[2J");
}

TEST(ProgressLine, AFileGetsNone) {
  support::TurnedClock clock;
  ::testing::internal::CaptureStderr();
  {
    ProgressLine line;
    clock.turn(10s);
    line.show("text");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace rl
