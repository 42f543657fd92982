// The head with its connections, leases and journal. The test plays its nodes; the clock stands
// still until it is turned.
#include "runtime/head/head_service.h"

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "manual_journal.h"
#include "tests/runtime/head/head_fixture.h"
#include "tests/runtime/node/control_inbox.h"
#include "tests/runtime/transport/channel_pair.h"
#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

/// A clock of a process that may be stopped: what was due meanwhile rings that much later. Its
/// random numbers are all different.
class StoppableClock final : public support::TurnedClock {
 public:
  Time now() const override { return TurnedClock::now() + stopped_; }
  std::uint64_t call_at(Time at, std::function<void()> action) override {
    return TurnedClock::call_at(at - stopped_, std::move(action));
  }
  void fill_random(std::span<std::byte> out) override {
    ++last_;
    for (std::byte& each : out) each = static_cast<std::byte>(last_);
  }
  void stop_for(Duration time) { stopped_ += time; }

 private:
  Duration stopped_{};
  unsigned char last_ = 0;
};

class HeadServiceTest : public ::testing::Test {
 protected:
  /// A node's connection: the head has its near end.
  struct Member {
    Member(EventLoop& loop, NodeId its_node) : node(its_node), connection(loop, peer(its_node)) {
      inbox.serve(connection.far);
    }
    static PeerInfo peer(NodeId node) {
      PeerInfo info = peer_of(Role::kNode);
      info.node = node;
      return info;
    }
    const std::shared_ptr<Channel>& channel() const { return connection.near; }

    const NodeId node;
    ControlInbox inbox;
    ChannelPair connection;
  };

  HeadServiceTest() { start(); }
  ~HeadServiceTest() override {
    service_.reset();
    for (Member& member : members_) member.connection.close();
    clock_.settle();
  }

  void start(HeadServiceOptions options = {}) {
    auto journal = std::make_unique<ManualJournal>();
    if (journal_) journal->entries = journal_->entries;
    journal_ = journal.get();
    service_ = std::make_unique<HeadService>(loop_, cluster_, std::make_unique<CpuScheduler>(),
                                             std::move(journal), options);
  }
  /// kill -9, and another head with what the journal has.
  Status restart() {
    for (Member& member : members_) member.connection.close();
    clock_.settle();
    auto next = std::make_unique<ManualJournal>();
    next->entries = journal_->entries;
    service_.reset();
    journal_ = next.get();
    service_ = std::make_unique<HeadService>(loop_, cluster_, std::make_unique<CpuScheduler>(),
                                             std::move(next));
    return service_->recover();
  }

  Member& connect(NodeId node) { return members_.emplace_back(loop_, node); }
  Answer ask(const Member& member, ControlRequest::Body body, RequestId id = {}) {
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    service_->handle(member.channel(), ControlRequest{job_, 10s, std::move(body), id},
                     [answer](Result<ControlAnswer> said) {
                       EXPECT_FALSE(answer->has_value()) << "answered twice";
                       answer->emplace(std::move(said));
                     });
    clock_.settle();
    return answer;
  }
  /// What a node that returns is to hold for groups, it holds.
  Answer enter(Member& member, bool returns = false) {
    control::RegisterNode body;
    body.info.node = member.node;
    body.info.resources = {{"CPU", 4}};
    body.returns = returns;
    body.jobs = {job_};
    const Answer answer = ask(member, body);
    record();
    while (member.inbox.waiting() > 0 &&
           std::holds_alternative<control::Reserve>(member.inbox.request().body)) {
      member.inbox.answer(ControlAnswer{control::Refusals{}});
      clock_.settle();
    }
    return answer;
  }
  Member& join(NodeId node) {
    Member& member = connect(node);
    EXPECT_TRUE(status(enter(member)).ok());
    return member;
  }
  /// A driver runs at the node.
  void start_job(const Member& member) {
    JobInfo info;
    info.job = job_;
    info.pid = 1;
    const Answer answer = ask(member, control::StartJob{info, {}});
    record();
    EXPECT_TRUE(status(answer).ok());
  }
  void record() {
    journal_->record_all();
    clock_.settle();
  }
  bool is_member(NodeId node) const { return service_->head().tables().nodes().contains(node); }
  const std::string* value(const std::string& key) const {
    return service_->head().tables().pairs().find(job_, key);
  }
  static bool waits(const Answer& answer) { return !answer->has_value(); }
  static Status status(const Answer& answer) {
    return answer->has_value() ? (*answer)->status() : internal_error("no answer yet");
  }
  Numbers numbers(const Member& member) {
    const Answer answer = ask(member, ObserveControl{control::ReadHead{}});
    EXPECT_TRUE(status(answer).ok());
    if (!status(answer).ok()) return {};
    return std::get<Numbers>(std::get<ObserveAnswer>(***answer));
  }

  static constexpr auto kLease = HeadServiceOptions().lease;
  StoppableClock clock_;
  const ClusterId cluster_ = ClusterId::random();
  const NodeId node_ = NodeId::random(), other_ = NodeId::random();
  const JobId job_ = JobId::random();
  const RequestId id_ = RequestId::random();
  EventLoop loop_;
  ManualJournal* journal_ = nullptr;
  std::list<Member> members_;
  std::unique_ptr<HeadService> service_;
};

// -- The journal

TEST_F(HeadServiceTest, AnAnswerLeavesOnceWhatItTellsIsRecorded) {
  Member& node = join(node_);
  start_job(node);
  const Answer put = ask(node, control::KvPut{"key", "value"});
  EXPECT_EQ(*value("key"), "value");
  EXPECT_TRUE(waits(put));
  record();
  EXPECT_TRUE(status(put).ok());
}

TEST_F(HeadServiceTest, AnswersLeaveInTheirOrder) {
  Member& node = join(node_);
  start_job(node);
  EXPECT_EQ(status(ask(node, control::KvGet{"key"})).code(), ErrorCode::kNotFound)
      << "nothing changed, and nothing waits";
  const Answer put = ask(node, control::KvPut{"key", "value"});
  const Answer get = ask(node, control::KvGet{"key"});
  EXPECT_TRUE(waits(get)) << "it tells of what is not recorded yet";
  journal_->record_first();
  EXPECT_TRUE(status(put).ok());
  EXPECT_TRUE(status(get).ok());
}

TEST_F(HeadServiceTest, WhatNodesAreAskedWaitsForTheJournalToo) {
  Member& node = join(node_);
  start_job(node);
  ActorSpec actor;
  actor.actor = ActorId::random();
  actor.class_name = "Counter";
  const Answer created = ask(node, control::CreateActor{actor});
  EXPECT_EQ(node.inbox.waiting(), 0u);
  record();
  ASSERT_EQ(node.inbox.waiting(), 1u);
  EXPECT_EQ(node.inbox.next<control::StartActor>().spec.actor, actor.actor);
  node.inbox.answer(ControlAnswer{ActorAddress{}});
  clock_.settle();
  EXPECT_TRUE(waits(created)) << "that it runs is not recorded yet";
  record();
  EXPECT_TRUE(status(created).ok());
}

TEST_F(HeadServiceTest, WhileNothingCanBeRecordedNothingNewIsTaken) {
  Member& node = join(node_);
  start_job(node);
  const Answer known = ask(node, control::KvPut{"key", "value"}, id_);
  journal_->trouble_now = resource_exhausted("the disk is full");
  EXPECT_EQ(status(ask(node, control::KvPut{"key", "other"})), journal_->trouble_now);
  EXPECT_EQ(status(ask(node, control::KvAdd{"sum", 1})), journal_->trouble_now);
  EXPECT_EQ(status(ask(node, control::CreateGroup{})), journal_->trouble_now);
  EXPECT_EQ(*value("key"), "value");
  EXPECT_TRUE(waits(ask(node, control::KvPut{"key", "value"}, id_))) << "it was taken before";
  EXPECT_TRUE(status(ask(node, control::QueryCluster{})).ok()) << "people see what is about to be";
  EXPECT_TRUE(waits(known));
  EXPECT_TRUE(waits(ask(node, control::EndJob{job_}))) << "what has happened is taken";
  EXPECT_FALSE(service_->head().tables().jobs().runs(job_));
}

TEST_F(HeadServiceTest, WhenThereIsHardlyRoomWhatTakesMuchIsRefused) {
  Member& node = join(node_);
  start_job(node);
  journal_->scarcity_now = resource_exhausted("the disk is nearly full");
  EXPECT_EQ(status(ask(node, control::KvPut{"key", "value"})), journal_->scarcity_now);
  EXPECT_EQ(status(ask(node, control::KvDelete{"key"})), Status());
  control::CreateGroup group;
  group.spec.group = GroupId::random();
  group.spec.bundles = {{{"CPU", 1}}};
  EXPECT_TRUE(waits(ask(node, group)));
}

TEST_F(HeadServiceTest, NodesHearOfAJobsEndThoughItCannotBeRecorded) {
  Member& node = join(node_);
  Member& other = join(other_);
  start_job(node);
  ask(node, control::EndJob{job_});
  clock_.turn(1s);
  EXPECT_EQ(other.inbox.waiting(), 0u) << "it is about to be recorded";
  journal_->trouble_now = resource_exhausted("the disk is full");
  clock_.turn(1s);
  ASSERT_EQ(other.inbox.waiting(), 1u);
  EXPECT_EQ(other.inbox.next<control::EndJob>().job, job_);
  other.inbox.answer();
  clock_.turn(2s);
  EXPECT_EQ(other.inbox.waiting(), 0u) << "once";
  journal_->trouble_now = {};
  record();
  EXPECT_EQ(other.inbox.waiting(), 1u) << "and in its turn";
}

TEST_F(HeadServiceTest, WithoutAJournalAnswersLeaveAtOnce) {
  journal_ = nullptr;
  service_ =
      std::make_unique<HeadService>(loop_, cluster_, std::make_unique<CpuScheduler>(), nullptr);
  Member& node = connect(node_);
  control::RegisterNode body;
  body.info.node = node_;
  EXPECT_TRUE(service_->recover().ok());
  EXPECT_TRUE(status(ask(node, body)).ok());
}

// -- Connections

TEST_F(HeadServiceTest, ANodeSpeaksOverTheConnectionThatItJoinedWith) {
  Member& stranger = connect(node_);
  EXPECT_EQ(status(ask(stranger, control::QueryCluster{})).code(), ErrorCode::kInvalidArgument);
  join(node_);
  EXPECT_EQ(status(ask(stranger, control::QueryCluster{})).code(), ErrorCode::kInvalidArgument);
  service_->on_closed(*stranger.channel(), unavailable("closed"));
  EXPECT_TRUE(is_member(node_)) << "another connection's end is not the node's";
}

TEST_F(HeadServiceTest, ANodeWhoseConnectionEndsIsLost) {
  Member& node = join(node_);
  Member& other = join(other_);
  start_job(node);
  node.connection.close();
  service_->on_closed(*node.channel(), unavailable("connection reset"));
  record();
  EXPECT_FALSE(is_member(node_));
  EXPECT_EQ(service_->head().tables().jobs().find(job_)->info.outcome, JobOutcome::kFailed);
  EXPECT_EQ(other.inbox.next<control::EndJob>().job, job_);
  EXPECT_EQ(numbers(other).at("nodes_connected"), 1);
}

TEST_F(HeadServiceTest, ANodeThatConnectsAgainGoesOnOverTheNewConnection) {
  Member& before = join(node_);
  start_job(before);
  Member& after = connect(node_);
  EXPECT_TRUE(status(enter(after, true)).ok());
  EXPECT_TRUE(before.channel()->closed());
  service_->on_closed(*before.channel(), unavailable("closed"));
  EXPECT_TRUE(is_member(node_)) << "the end of the old one comes late";
  EXPECT_TRUE(service_->head().tables().jobs().runs(job_));
  EXPECT_EQ(numbers(after).at("node_returns"), 1);
  ask(after, control::CancelJob{job_});
  EXPECT_EQ(after.inbox.waiting(), 1u);
}

TEST_F(HeadServiceTest, OneThatWasDeclaredDeadMayNotReturn) {
  Member& node = join(node_);
  service_->on_closed(*node.channel(), unavailable("closed"));
  record();
  EXPECT_EQ(status(enter(connect(node_), true)).code(), ErrorCode::kCancelled);
}

// -- Leases

TEST_F(HeadServiceTest, ANodeThatIsSilentForALeaseIsLost) {
  Member& node = join(node_);
  clock_.turn(kLease);
  EXPECT_TRUE(is_member(node_));
  clock_.turn(1ms);
  EXPECT_FALSE(is_member(node_));
  EXPECT_TRUE(node.channel()->closed());
}

TEST_F(HeadServiceTest, WhateverANodeSaysRenewsItsLease) {
  Member& node = join(node_);
  Member& silent = join(other_);
  Member& lease = connect(node_);  // a connection for this alone
  clock_.turn(kLease - 1ms);
  EXPECT_TRUE(status(ask(lease, control::Heartbeat{})).ok());
  clock_.turn(2ms);
  EXPECT_TRUE(is_member(node_));
  EXPECT_FALSE(is_member(other_));
  EXPECT_EQ(status(ask(silent, control::Heartbeat{})).code(), ErrorCode::kCancelled)
      << "it learns that it is lost";
  clock_.turn(kLease - 2ms);
  ask(node, control::QueryCluster{});
  clock_.turn(kLease);
  EXPECT_TRUE(is_member(node_));
  EXPECT_EQ(numbers(node).at("leases_missed"), 1);
  clock_.turn(kLease + 1ms);
  EXPECT_FALSE(is_member(node_));
}

TEST_F(HeadServiceTest, TheNodeNextToTheHeadIsNotLostBySilence) {
  HeadServiceOptions options;
  options.host = node_;
  service_.reset();
  journal_ = nullptr;
  start(options);
  join(node_);
  join(other_);
  clock_.turn(kLease + 1ms);
  EXPECT_TRUE(is_member(node_));
  EXPECT_FALSE(is_member(other_));
}

TEST_F(HeadServiceTest, TheTimeInWhichTheHeadWasStoppedIsNotHeldAgainstNodes) {
  join(node_);
  clock_.turn(100ms);
  clock_.stop_for(1h);
  clock_.turn(1s);
  EXPECT_TRUE(is_member(node_));
  clock_.turn(kLease);
  EXPECT_FALSE(is_member(node_)) << "that it was silent since is";
}

// -- A restart of the head

TEST_F(HeadServiceTest, TheNextHeadWaitsALeaseForItsNodes) {
  start_job(join(node_));
  join(other_);
  ASSERT_TRUE(restart().ok());
  EXPECT_TRUE(is_member(node_));
  EXPECT_TRUE(service_->head().tables().jobs().runs(job_));
  clock_.turn(kLease - 1ms);
  EXPECT_TRUE(status(enter(connect(node_), true)).ok());
  clock_.turn(2ms);
  EXPECT_TRUE(is_member(node_));
  EXPECT_FALSE(is_member(other_)) << "it has not come back";
}

TEST_F(HeadServiceTest, WhatACallerWantsOfANodeThatIsAwayWaitsForIt) {
  start_job(join(node_));
  join(other_);
  ASSERT_TRUE(restart().ok());
  Member& other = connect(other_);
  EXPECT_TRUE(status(enter(other, true)).ok());
  const Answer cancels = ask(other, control::CancelJob{job_});
  EXPECT_TRUE(waits(cancels));
  clock_.turn(4s);
  Member& node = connect(node_);
  EXPECT_TRUE(status(enter(node, true)).ok());
  ASSERT_EQ(node.inbox.waiting(), 1u);
  EXPECT_EQ(node.inbox.next<control::CancelJob>().job, job_);
  EXPECT_EQ(node.inbox.request().timeout, 6s) << "what is left of its time";
  node.inbox.answer();
  clock_.settle();
  EXPECT_TRUE(status(cancels).ok());
}

TEST_F(HeadServiceTest, WhatWaitsForANodeThatIsLostIsAnswered) {
  start_job(join(node_));
  join(other_);
  ASSERT_TRUE(restart().ok());
  Member& other = connect(other_);
  EXPECT_TRUE(status(enter(other, true)).ok());
  clock_.turn(kLease - 1s);
  const Answer cancels = ask(other, control::CancelJob{job_});
  clock_.turn(2s);
  record();
  ASSERT_FALSE(is_member(node_));
  EXPECT_TRUE(status(cancels).ok()) << "the job has ended with its node";
}

TEST_F(HeadServiceTest, AJournalThatIsDamagedIsNotTakenOver) {
  join(node_);
  journal_->entries["damaged"] = "no entry";
  EXPECT_EQ(restart().code(), ErrorCode::kInvalidArgument);
}

// -- The end

TEST_F(HeadServiceTest, AllNodesButThisOneStopBeforeTheEnd) {
  Member& node = join(node_);
  Member& other = join(other_);
  bool is_over = false;
  service_->stop_nodes(node_, 5s, [&] { is_over = true; });
  clock_.settle();
  EXPECT_EQ(node.inbox.waiting(), 0u);
  other.inbox.next<control::StopNode>();
  EXPECT_EQ(other.inbox.request().timeout, 5s);
  EXPECT_FALSE(is_over);
  service_->on_closed(*other.channel(), unavailable("it has ended"));
  EXPECT_TRUE(is_over);
  is_over = false;
  clock_.turn(6s);
  EXPECT_FALSE(is_over) << "said once";
}

TEST_F(HeadServiceTest, ANodeThatComesBackMeanwhileIsToldAgainAndANewOneIsRefused) {
  join(node_);
  join(other_);
  service_->stop_nodes(node_, 5s, [] {});
  clock_.settle();
  Member& again = join(other_);
  clock_.settle();
  again.inbox.next<control::StopNode>();
  Member& stranger = connect(NodeId::random());
  EXPECT_EQ(status(enter(stranger)).code(), ErrorCode::kUnavailable);
}

TEST_F(HeadServiceTest, NodesThatDoNotStopAreWaitedForUntilTheTimeIsOver) {
  join(node_);
  join(other_);
  int over = 0;
  service_->stop_nodes(node_, 5s, [&] { ++over; });
  clock_.turn(5s - 1ms);
  EXPECT_EQ(over, 0);
  clock_.turn(1ms);
  EXPECT_EQ(over, 1);
}

TEST_F(HeadServiceTest, WhereThisNodeIsAloneTheEndIsAtOnce) {
  join(node_);
  bool is_over = false;
  service_->stop_nodes(node_, 5s, [&] { is_over = true; });
  EXPECT_TRUE(is_over);
}

}  // namespace
}  // namespace runtime
