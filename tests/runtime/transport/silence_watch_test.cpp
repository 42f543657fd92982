// Peers that acknowledge nothing, on a clock that stands still until it is turned.
#include "runtime/transport/silence_watch.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

class SilenceWatchTest : public ::testing::Test {
 protected:
  static constexpr auto kTick = SilenceWatch::kTick;

  SilenceWatchTest() {
    owner_ = std::make_shared<SilenceWatch>(loop_.context());
    owner_->start(
        owner_,
        [this] {
          ++looks_;
          return is_silent_;
        },
        [this] {
          ++notified_;
          return goes_on_;
        });
  }
  ~SilenceWatchTest() override {
    owner_.reset();
    clock_.settle();
  }

  support::TurnedClock clock_;
  EventLoop loop_;
  bool is_silent_ = true, goes_on_ = true;
  int looks_ = 0, notified_ = 0;
  std::shared_ptr<SilenceWatch> owner_;
};

TEST_F(SilenceWatchTest, NotifiesAfterSilentTicksInARow) {
  clock_.turn((SilenceWatch::kTicksMax - 1) * kTick);
  EXPECT_EQ(looks_, SilenceWatch::kTicksMax - 1) << "a look a tick";
  EXPECT_EQ(notified_, 0);
  clock_.turn(kTick);
  EXPECT_EQ(notified_, 1);
  clock_.turn((SilenceWatch::kTicksMax - 1) * kTick);
  EXPECT_EQ(notified_, 1) << "it begins to count again";
  clock_.turn(kTick);
  EXPECT_EQ(notified_, 2);
}

TEST_F(SilenceWatchTest, AnythingThatIsHeardBeginsTheCountAgain) {
  clock_.turn((SilenceWatch::kTicksMax - 1) * kTick);
  is_silent_ = false;
  clock_.turn(kTick);
  is_silent_ = true;
  clock_.turn((SilenceWatch::kTicksMax - 1) * kTick);
  EXPECT_EQ(notified_, 0);
  clock_.turn(kTick);
  EXPECT_EQ(notified_, 1);
}

TEST_F(SilenceWatchTest, EndsWhenTheNotifiedOwnerSaysSo) {
  goes_on_ = false;
  clock_.turn(10 * SilenceWatch::kTicksMax * kTick);
  EXPECT_EQ(notified_, 1);
  EXPECT_EQ(looks_, SilenceWatch::kTicksMax);
}

TEST_F(SilenceWatchTest, EndsWithStop) {
  clock_.turn(kTick);
  owner_->stop();
  clock_.turn(10 * SilenceWatch::kTicksMax * kTick);
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(notified_, 0);
}

TEST_F(SilenceWatchTest, EndsWithItsOwner) {
  clock_.turn(kTick);
  owner_.reset();
  clock_.turn(10 * SilenceWatch::kTicksMax * kTick);
  EXPECT_EQ(looks_, 1);
}

}  // namespace
}  // namespace runtime
