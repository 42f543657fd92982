#include "runtime/node/lease_keeper.h"

#include <utility>

#include "tests/runtime/node/head_socket.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

// The head is on the test's loop, the keeper on its own.
class LeaseKeeperTest : public ::testing::Test {
 protected:
  void make(const std::string& token = "secret") {
    Credentials credentials = HeadSocket::credentials();
    credentials.token = token;
    keeper_ = std::make_unique<LeaseKeeper>(head_.endpoint(), credentials, 1ms);
    ASSERT_TRUE(keeper_->status().ok()) << keeper_->status().to_string();
  }
  void renew(Result<ControlAnswer> answer = ControlAnswer{}) {
    head_.next<control::Heartbeat>();
    head_.answer(std::move(answer));
  }
  std::size_t connections() {
    return on_loop(loop_, [&] { return head_.connections(); });
  }

  support::TemporaryFolder folder_;
  EventLoop loop_;
  HeadSocket head_{loop_, *Endpoint::unix_socket(folder_.file("head"))};
  std::unique_ptr<LeaseKeeper> keeper_;
};

TEST_F(LeaseKeeperTest, RenewsTheLeaseAgainAndAgain) {
  head_.open();
  make();
  for (int i = 0; i < 5; ++i) renew();
  EXPECT_EQ(connections(), 1u);
}

TEST_F(LeaseKeeperTest, HasOneRequestUnderWay) {
  head_.open();
  make();
  head_.next<control::Heartbeat>();
  const Deadline later = deadline_after(10ms);
  EXPECT_TRUE(comes_true(loop_, [&] { return steady_now() > later; }));
  run_on(loop_, [&] { EXPECT_EQ(head_.inbox.waiting(), 1u); });
}

TEST_F(LeaseKeeperTest, WaitsForAHeadThatIsAway) {
  make();
  head_.open();
  renew();
  head_.close();
  head_.open();
  renew();
}

TEST_F(LeaseKeeperTest, TriesAgainWhenItCannotConnect) {
  head_.open("another token");
  make();
  EXPECT_TRUE(comes_true(loop_, [&] { return head_.refused() >= 3; }));
  head_.close();
  head_.open();
  renew();
}

TEST_F(LeaseKeeperTest, AHeadThatDiesBeforeItAnswersIsAskedAgain) {
  head_.open();
  make();
  head_.next<control::Heartbeat>();
  run_on(loop_, [&] {
    head_.inbox.ignore();
    head_.drop_connections();
  });
  renew();
}

TEST_F(LeaseKeeperTest, AfterAFailureItConnectsAgain) {
  head_.open();
  make();
  renew(unavailable("not yet"));
  renew();
  renew();
  EXPECT_EQ(connections(), 2u);
}

TEST_F(LeaseKeeperTest, EndsWithItsConnection) {
  head_.open();
  make();
  head_.next<control::Heartbeat>();
  keeper_.reset();
  EXPECT_TRUE(comes_true(loop_, [&] { return head_.open_connections() == 0; }));
  EXPECT_EQ(connections(), 1u);
}

TEST_F(LeaseKeeperTest, EndsWithoutAHead) {
  make();
  keeper_.reset();
  head_.open();
  make("another");
  keeper_.reset();
  EXPECT_EQ(connections(), 0u);
}

}  // namespace
}  // namespace runtime
