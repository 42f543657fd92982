#include "runtime/node/head_link.h"

#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/node/head_socket.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

// A node next to a head that the test plays. Nothing happens by time unless a test says when.
class HeadLinkTest : public ::testing::Test {
 protected:
  HeadLinkTest() {
    options_.heartbeat = 1h;
    options_.patience = 1h;
    options_.mute_max = 1h;
  }
  ~HeadLinkTest() override {
    run_on(loop_, [&] { link_.reset(); });
  }
  void make(const std::string& token = "secret") {
    Credentials credentials = HeadSocket::credentials();
    credentials.token = token;
    HeadLink::Callbacks callbacks;
    callbacks.registration = [this] {
      control::RegisterNode registration;
      registration.info.hostname = "here";
      return registration;
    };
    callbacks.request = [this](const ControlRequest& request, ControlAnswerer answer) {
      asked_.push_back(request);
      answer(ControlAnswer{std::string("done")});
    };
    callbacks.event = [this](const ControlEvent& event) { events_.push_back(event); };
    callbacks.lost = [this](Status why) { lost_.push_back(std::move(why)); };
    callbacks.head_trouble = [this] { return trouble_; };
    callbacks.registered = [this] { ++registered_; };
    run_on(loop_, [&] {
      link_ = std::make_unique<HeadLink>(loop_, head_.endpoint(), credentials, std::move(callbacks),
                                         options_);
    });
  }
  void join(std::chrono::milliseconds timeout = 20s) {
    run_on(loop_, [&] {
      link_->join(timeout, [this](Status status) { joined_.push_back(std::move(status)); });
    });
  }
  Status joined() {
    EXPECT_TRUE(comes_true(loop_, [&] { return !joined_.empty(); }));
    return on_loop(loop_, [&] {
      EXPECT_EQ(joined_.size(), 1u);
      return joined_.empty() ? internal_error("not joined") : joined_.back();
    });
  }
  /// To a head that is there.
  void make_and_join() {
    head_.open();
    make();
    join();
    EXPECT_FALSE(head_.next<control::RegisterNode>().returns);
    head_.answer(ControlAnswer{std::int64_t{0}});
    ASSERT_TRUE(joined().ok()) << joined().to_string();
  }
  using Answered = std::shared_ptr<std::vector<Result<ControlAnswer>>>;
  Answered request(ControlRequest::Body body, std::chrono::milliseconds timeout = 20s,
                   HeadLink::Urgency urgency = HeadLink::Urgency::kWaits) {
    auto answered = std::make_shared<std::vector<Result<ControlAnswer>>>();
    run_on(loop_, [&] {
      link_->request(
          ControlRequest{{}, timeout, std::move(body)},
          [answered](Result<ControlAnswer> answer) { answered->push_back(std::move(answer)); },
          urgency);
    });
    return answered;
  }
  Status status(const Answered& answered) {
    EXPECT_TRUE(comes_true(loop_, [&] { return !answered->empty(); }));
    return on_loop(loop_, [&] {
      EXPECT_EQ(answered->size(), 1u);
      return answered->empty() ? internal_error("no answer") : answered->back().status();
    });
  }
  bool is_open(const Answered& answered) {
    return on_loop(loop_, [&] { return answered->empty(); });
  }
  Status lost() {
    EXPECT_TRUE(comes_true(loop_, [&] { return !lost_.empty(); }));
    return on_loop(loop_, [&] {
      EXPECT_EQ(lost_.size(), 1u);
      return lost_.empty() ? Status() : lost_.back();
    });
  }

  support::TemporaryFolder folder_;
  EventLoop loop_;
  HeadSocket head_{loop_, *Endpoint::unix_socket(folder_.file("head"))};
  HeadLinkOptions options_;
  std::vector<Status> joined_, lost_;
  std::vector<ControlRequest> asked_;
  std::vector<ControlEvent> events_;
  Status trouble_;
  int registered_ = 0;
  std::unique_ptr<HeadLink> link_;
};

TEST_F(HeadLinkTest, JoinsWithWhatTheNodeIs) {
  head_.open();
  make();
  join();
  const auto registration = head_.next<control::RegisterNode>();
  EXPECT_EQ(registration.info.hostname, "here");
  EXPECT_FALSE(registration.returns);
  run_on(loop_, [&] { EXPECT_FALSE(link_->is_up()) << "the head has not answered"; });
  head_.answer(ControlAnswer{std::int64_t{1}});
  EXPECT_TRUE(joined().ok());
  run_on(loop_, [&] {
    EXPECT_TRUE(link_->is_up());
    EXPECT_EQ(link_->reconnects(), 0u);
    EXPECT_EQ(registered_, 1);
  });
}

TEST_F(HeadLinkTest, AHeadThatRefusesTheNodeEndsTheJoin) {
  head_.open();
  make();
  join();
  head_.next<control::RegisterNode>();
  head_.answer(invalid_argument("another cluster"));
  EXPECT_EQ(joined(), invalid_argument("another cluster"));
  run_on(loop_, [&] { EXPECT_TRUE(lost_.empty()) << "it was no member"; });
  EXPECT_EQ(status(request(control::KvPut{"a", "1"})).code(), ErrorCode::kUnavailable);
}

TEST_F(HeadLinkTest, WaitsForAHeadThatIsNotThereYet) {
  make();
  join();
  run_on(loop_, [&] { EXPECT_TRUE(joined_.empty()); });
  head_.open();
  head_.next<control::RegisterNode>();
  // It may be reading its journal.
  head_.answer(unavailable("not yet"));
  EXPECT_FALSE(head_.next<control::RegisterNode>().returns);
  head_.answer();
  EXPECT_TRUE(joined().ok());
}

TEST_F(HeadLinkTest, GivesUpOnAHeadThatDoesNotCome) {
  make();
  join(30ms);
  EXPECT_EQ(joined().code(), ErrorCode::kUnavailable);
}

TEST_F(HeadLinkTest, AWrongTokenStaysWrong) {
  head_.open();
  make("another");
  join();
  EXPECT_EQ(joined().code(), ErrorCode::kInvalidArgument);
}

TEST_F(HeadLinkTest, RequestsWaitUntilTheNodeIsAMember) {
  head_.open();
  make();
  join();
  const Answered first = request(control::KvPut{"a", "1"});
  const Answered second = request(control::KvPut{"b", "2"});
  head_.next<control::RegisterNode>();
  run_on(loop_, [&] { EXPECT_EQ(head_.inbox.waiting(), 1u); });
  head_.answer();
  EXPECT_EQ(head_.next<control::KvPut>().key, "a");
  head_.answer(not_found("no"));
  EXPECT_EQ(status(first), not_found("no")) << "as the head answers";
  EXPECT_EQ(head_.next<control::KvPut>().key, "b");
  head_.answer();
  EXPECT_TRUE(status(second).ok());
}

TEST_F(HeadLinkTest, AsksAHeadThatIsStartedAgainOnceMore) {
  make_and_join();
  const Answered put = request(control::KvPut{"a", "1"});
  head_.next<control::KvPut>();
  const ControlRequest before = on_loop(loop_, [&] { return head_.inbox.request(); });
  run_on(loop_, [&] { head_.inbox.ignore(); });
  head_.close();
  EXPECT_TRUE(comes_true(loop_, [&] { return !link_->is_up(); }));
  EXPECT_TRUE(is_open(put));
  head_.open();
  EXPECT_TRUE(head_.next<control::RegisterNode>().returns);
  head_.answer();
  EXPECT_EQ(head_.next<control::KvPut>().key, "a");
  run_on(loop_, [&] {
    EXPECT_EQ(head_.inbox.request().id, before.id) << "by which the head knows it";
    EXPECT_LE(head_.inbox.request().timeout, before.timeout);
  });
  head_.answer();
  EXPECT_TRUE(status(put).ok());
  run_on(loop_, [&] {
    EXPECT_EQ(link_->reconnects(), 1u);
    EXPECT_EQ(registered_, 2);
    EXPECT_TRUE(lost_.empty());
  });
}

TEST_F(HeadLinkTest, OneThatWasDeclaredDeadIsLost) {
  make_and_join();
  const Answered put = request(control::KvPut{"a", "1"});
  head_.next<control::KvPut>();
  run_on(loop_, [&] {
    head_.inbox.ignore();
    head_.drop_connections();
  });
  head_.next<control::RegisterNode>();
  head_.answer(cancelled("declared dead"));
  EXPECT_EQ(lost(), cancelled("declared dead"));
  EXPECT_EQ(status(put), unavailable("the node has left its cluster: declared dead"));
}

TEST_F(HeadLinkTest, AHeadThatStaysAwayLosesTheNode) {
  options_.patience = 50ms;
  make_and_join();
  const Answered put = request(control::KvPut{"a", "1"});
  trouble_ = resource_exhausted("its disk is full");
  head_.close();
  EXPECT_EQ(lost().code(), ErrorCode::kUnavailable);
  EXPECT_NE(lost().message().find("its disk is full"), std::string::npos) << lost().message();
  EXPECT_EQ(status(put).code(), ErrorCode::kUnavailable);
}

TEST_F(HeadLinkTest, AnUrgentRequestDoesNotWaitForAMuteHead) {
  options_.mute_max = 30ms;
  make_and_join();
  const Answered patient = request(control::KvPut{"a", "1"});
  const Answered urgent = request(control::KvPut{"b", "2"}, 20s, HeadLink::Urgency::kNow);
  const Status why = status(urgent);
  EXPECT_EQ(why.code(), ErrorCode::kUnavailable);
  EXPECT_NE(why.message().find("has not answered since"), std::string::npos) << why.message();
  EXPECT_TRUE(is_open(patient));
  // An answer that comes after all is for no one.
  head_.next<control::KvPut>();
  head_.answer();
  EXPECT_TRUE(status(patient).ok());
  head_.next<control::KvPut>();
  head_.answer();
  EXPECT_EQ(status(urgent), why);
}

TEST_F(HeadLinkTest, AnUrgentRequestDoesNotWaitForAHeadThatIsAway) {
  options_.mute_max = 30ms;
  make_and_join();
  head_.close();
  EXPECT_TRUE(comes_true(loop_, [&] { return !link_->is_up(); }));
  trouble_ = resource_exhausted("its disk is full");
  const Answered patient = request(control::KvPut{"a", "1"});
  const Status why = status(request(control::KvPut{"b", "2"}, 20s, HeadLink::Urgency::kNow));
  EXPECT_EQ(why.code(), ErrorCode::kUnavailable);
  EXPECT_NE(why.message().find("its disk is full"), std::string::npos) << why.message();
  EXPECT_TRUE(is_open(patient));
}

TEST_F(HeadLinkTest, ARequestThatIsNotAnsweredEndsAtItsDeadline) {
  make_and_join();
  EXPECT_EQ(status(request(control::KvPut{"a", "1"}, 1ms)),
            deadline_exceeded("the head does not answer"));
}

TEST_F(HeadLinkTest, ConnectsAgainToAHeadThatHasFallenSilent) {
  options_.heartbeat = 2ms;
  options_.silence_max = 40ms;
  make_and_join();
  head_.next<control::Heartbeat>();
  // None is answered.
  EXPECT_TRUE(comes_true(loop_, [&] {
    while (head_.inbox.waiting() > 0 &&
           std::holds_alternative<control::Heartbeat>(head_.inbox.request().body))
      head_.inbox.ignore();
    return head_.inbox.waiting() > 0;
  }));
  EXPECT_TRUE(head_.next<control::RegisterNode>().returns);
  run_on(loop_, [&] { EXPECT_EQ(head_.connections(), 2u); });
}

TEST_F(HeadLinkTest, TheHeadAsksAndTellsTheNode) {
  make_and_join();
  std::optional<Result<ControlAnswer>> answer;
  run_on(loop_, [&] {
    send_request(head_.channel(), ControlRequest{{}, 20s, control::StopNode{}},
                 [&](Result<ControlAnswer> said) { answer = std::move(said); });
    send_event(head_.channel(), ControlEvent{control::Shutdown{}});
  });
  EXPECT_TRUE(comes_true(loop_, [&] { return answer.has_value() && !events_.empty(); }));
  run_on(loop_, [&] {
    ASSERT_TRUE(answer->ok()) << answer->status().to_string();
    EXPECT_EQ(**answer, ControlAnswer{std::string("done")});
    ASSERT_EQ(asked_.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<control::StopNode>(asked_[0].body));
    EXPECT_TRUE(std::holds_alternative<control::Shutdown>(events_[0]));
  });
}

TEST_F(HeadLinkTest, EventsAreForAHeadThatIsThere) {
  make_and_join();
  LogLines lines;
  lines.lines = {"first"};
  run_on(loop_, [&] { link_->event(lines); });
  EXPECT_TRUE(comes_true(loop_, [&] { return head_.inbox.events().size() == 1; }));
  head_.close();
  EXPECT_TRUE(comes_true(loop_, [&] { return !link_->is_up(); }));
  run_on(loop_, [&] { link_->event(lines); });
  head_.open();
  head_.next<control::RegisterNode>();
  head_.answer();
  EXPECT_TRUE(comes_true(loop_, [&] { return link_->is_up(); }));
  lines.lines = {"last"};
  run_on(loop_, [&] { link_->event(lines); });
  EXPECT_TRUE(comes_true(loop_, [&] { return head_.inbox.events().size() == 2; }));
  run_on(loop_,
         [&] { EXPECT_EQ(std::get<LogLines>(head_.inbox.events().back()).lines, lines.lines); });
}

TEST_F(HeadLinkTest, HandsOnConnectionsForTheHeadAlsoBeforeItIsAMember) {
  make();
  run_on(loop_, [&] {
    FileDescriptor socket;
    EXPECT_EQ(link_->attach(Inbound(), socket).code(), ErrorCode::kUnavailable);
  });
  head_.open();
  join();
  head_.next<control::RegisterNode>();
  std::size_t attached = 0;
  run_on(loop_, [&] {
    head_.channel().set_handler([&](const std::shared_ptr<Channel>&, const Message& message) {
      attached += message.kind == FrameKind::kAttach && message.fds.size() == 1;
    });
    int ends[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    FileDescriptor socket(ends[0]), other(ends[1]);
    const Status status = link_->attach(Inbound(), socket);
    EXPECT_TRUE(status.ok()) << status.to_string();
  });
  EXPECT_TRUE(comes_true(loop_, [&] { return attached == 1; }));
}

TEST_F(HeadLinkTest, EndsEverythingWhenItIsClosed) {
  make_and_join();
  const Answered put = request(control::KvPut{"a", "1"});
  run_on(loop_, [&] {
    link_->close(cancelled("stopped"));
    EXPECT_FALSE(link_->is_up());
  });
  EXPECT_EQ(status(put), unavailable("the node has left its cluster: stopped"));
  EXPECT_EQ(status(request(control::KvPut{"b", "2"})),
            unavailable("the node has left its cluster"));
  EXPECT_TRUE(comes_true(loop_, [&] { return head_.open_connections() == 0; }));
  run_on(loop_, [&] {
    EXPECT_EQ(head_.connections(), 1u);
    EXPECT_TRUE(lost_.empty()) << "the node has left by itself";
  });
}

TEST_F(HeadLinkTest, AJoinEndsWhenItIsClosed) {
  make();
  join();
  run_on(loop_, [&] { link_->close(cancelled("stopped")); });
  EXPECT_EQ(joined(), cancelled("stopped"));
}

TEST_F(HeadLinkTest, MayGoWhileItConnects) {
  head_.open();
  make();
  join();
  run_on(loop_, [&] { link_.reset(); });
  EXPECT_TRUE(comes_true(loop_, [&] { return head_.open_connections() == 0; }));
  run_on(loop_, [&] { EXPECT_TRUE(joined_.empty()); });
}

}  // namespace
}  // namespace runtime
