#include "runtime/call/worker_link.h"

#include <optional>

#include "caller_fixture.h"

namespace runtime {
namespace {

using test::FakeWorker;

/// Notes what a link tells it. On the loop.
struct FakeUser final : WorkerLink::User {
  std::uint64_t incarnation() const override { return 5; }
  void on_connected(const WorkerLink*, Result<std::shared_ptr<Channel>> channel) override {
    connections.push_back(std::move(channel));
  }
  void on_notice(const std::shared_ptr<Channel>&, const CallNotice& notice,
                 const Message&) override {
    notices.push_back(notice);
  }
  void on_channel_closed(const Channel*, Status reason) override { closed = std::move(reason); }

  std::vector<Result<std::shared_ptr<Channel>>> connections;
  std::vector<CallNotice> notices;
  std::optional<Status> closed;
};

class WorkerLinkTest : public test::CallerTest {
 protected:
  std::shared_ptr<WorkerLink> link(const ActorAddress& address) {
    return clients_.link_for(context_, address);
  }
  bool is_connected(const FakeUser& user) {
    return comes_true(loop_, [&] { return !user.connections.empty(); });
  }

  // On the loop, so that the connection cannot be there before both wait for it: who finds it is
  // told nothing.
  void attach_both(WorkerLink& worker) {
    run_on(loop_, [&] {
      EXPECT_EQ(worker.attach(actor_, user_), nullptr);
      EXPECT_EQ(worker.attach(other_actor_, other_), nullptr);
    });
  }

  const ActorId other_actor_ = ActorId::random();
  std::shared_ptr<FakeUser> user_ = std::make_shared<FakeUser>();
  std::shared_ptr<FakeUser> other_ = std::make_shared<FakeUser>();
};

TEST_F(WorkerLinkTest, ActorsOfAProcessShareItsConnection) {
  const ActorAddress at = address();
  auto worker = link(at);
  EXPECT_EQ(link(at), worker);
  run_on(loop_, [&] { node_.reachable = false; });
  EXPECT_EQ(worker->attach(actor_, user_), nullptr);
  EXPECT_EQ(worker->attach(other_actor_, other_), nullptr);
  ASSERT_TRUE(comes_true(loop_, [&] { return node_.waiting.size() == 1; }));
  run_on(loop_, [&] { node_.waiting[0](); });
  ASSERT_TRUE(is_connected(*user_) && is_connected(*other_));
  run_on(loop_, [&] {
    EXPECT_EQ(node_.dials, 1);
    EXPECT_TRUE(user_->connections[0].ok());
  });
  EXPECT_NE(worker->channel(), nullptr);
  EXPECT_EQ(worker->attach(ActorId::random(), std::make_shared<FakeUser>()), worker->channel());
}

TEST_F(WorkerLinkTest, WorkersOfOtherNodesAreReachedByWayOfThese) {
  ActorAddress far = address();
  far.node = NodeId::random();
  far.node_address = "10.0.0.9:77";
  auto worker = link(far);
  EXPECT_FALSE(worker->is_local());
  EXPECT_TRUE(link(address())->is_local());
  (void)worker->attach(actor_, user_);
  ASSERT_TRUE(is_connected(*user_));
  with_worker(0, [&](FakeWorker& there) {
    EXPECT_EQ(there.dialled, Endpoint::parse("10.0.0.9:77")->for_worker(far.worker));
  });
}

TEST_F(WorkerLinkTest, AFailedConnectionIsToldAndTheNextAttemptIsAnother) {
  run_on(loop_, [&] { node_.refused_dials = 1; });
  auto worker = link(address());
  (void)worker->attach(actor_, user_);
  ASSERT_TRUE(is_connected(*user_));
  run_on(loop_, [&] {
    EXPECT_EQ(user_->connections[0].status(), unavailable("nothing listens"));
    EXPECT_FALSE(user_->closed);
  });
  EXPECT_EQ(worker->channel(), nullptr);
  (void)worker->attach(actor_, user_);
  ASSERT_TRUE(comes_true(loop_, [&] { return user_->connections.size() == 2; }));
  EXPECT_NE(worker->channel(), nullptr);
}

TEST_F(WorkerLinkTest, AnAddressThatIsNoneFailsWithoutADial) {
  ActorAddress nowhere = address();
  nowhere.unix_path.clear();
  nowhere.node_address = "nowhere";
  auto worker = link(nowhere);
  (void)worker->attach(actor_, user_);
  ASSERT_TRUE(is_connected(*user_));
  run_on(loop_, [&] {
    EXPECT_EQ(user_->connections[0].status().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(node_.dials, 0);
  });
}

TEST_F(WorkerLinkTest, ANoticeGoesToTheUserOfItsActor) {
  auto worker = link(address());
  attach_both(*worker);
  ASSERT_TRUE(is_connected(*user_) && is_connected(*other_));
  with_worker(0, [&](FakeWorker& there) {
    send_notice(*there.pair.far, {ActorId::random(), 1, CallNotice::Kind::kDrained}, Flush::kNow);
    send_notice(*there.pair.far, {other_actor_, 2, CallNotice::Kind::kDrained}, Flush::kNow);
  });
  ASSERT_TRUE(comes_true(loop_, [&] { return other_->notices.size() == 1; }));
  run_on(loop_, [&] {
    EXPECT_EQ(other_->notices[0].sequence, 2u);
    EXPECT_TRUE(user_->notices.empty());
  });
}

TEST_F(WorkerLinkTest, AllUsersHearOfTheConnectionsEndAndTheNextCallConnectsAgain) {
  auto worker = link(address());
  attach_both(*worker);
  ASSERT_TRUE(is_connected(*user_) && is_connected(*other_));
  with_worker(0, [](FakeWorker& there) { there.die(); });
  ASSERT_TRUE(comes_true(loop_, [&] { return user_->closed && other_->closed; }));
  EXPECT_EQ(user_->closed->code(), ErrorCode::kUnavailable);
  EXPECT_EQ(worker->channel(), nullptr);
  EXPECT_EQ(worker->attach(actor_, user_), nullptr);
  EXPECT_TRUE(comes_true(loop_, [&] { return node_.workers.size() == 2; }));
}

TEST_F(WorkerLinkTest, AUserThatIsGoneHearsNothing) {
  auto worker = link(address());
  attach_both(*worker);
  ASSERT_TRUE(is_connected(*user_) && is_connected(*other_));
  user_.reset();
  worker->detach(actor_);
  worker->detach(other_actor_);
  worker->close(cancelled("given up"));
  ASSERT_TRUE(comes_true(loop_, [&] { return other_->closed.has_value(); }))
      << "one that lives is not detached";
  EXPECT_NE(other_->closed->message().find("given up"), std::string::npos);
}

TEST_F(WorkerLinkTest, TheConnectionEndsWithItsLastUser) {
  const ActorAddress at = address();
  auto worker = link(at);
  (void)worker->attach(actor_, user_);
  ASSERT_TRUE(is_connected(*user_));
  worker.reset();
  EXPECT_TRUE(comes_true(loop_, [&] { return node_.workers[0]->pair.far->closed(); }));
  EXPECT_TRUE(clients_.links().empty());
  run_on(loop_, [&] { EXPECT_FALSE(user_->closed) << "it has no link any more"; });
}

}  // namespace
}  // namespace runtime
