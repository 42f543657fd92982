#include "runtime/node/head_connection.h"

#include <signal.h>

#include <string>
#include <vector>

#include "tests/runtime/node/head_socket.h"
#include "tests/runtime/node/script.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class HeadConnectionTest : public ::testing::Test {
 protected:
  HeadConnectionTest() { options_.credentials = HeadSocket::credentials(); }
  ~HeadConnectionTest() override {
    if (connection_) connection_->drop_lease();
    run_on(loop_, [&] { connection_.reset(); });
  }
  void make() {
    HeadLink::Callbacks callbacks;
    callbacks.registration = [] { return control::RegisterNode(); };
    callbacks.request = [](const ControlRequest&, ControlAnswerer answer) {
      answer(ControlAnswer{});
    };
    callbacks.event = [](const ControlEvent&) {};
    callbacks.lost = [this](const Status& why) {
      lost_.push_back(why);
      connection_->close(why);  // as the node does
    };
    run_on(loop_, [&] {
      connection_ = std::make_unique<HeadConnection>(loop_, options_, std::move(callbacks));
    });
  }
  /// The head takes whatever is asked, but heartbeats, which are counted.
  void answer_all(HeadSocket& head) {
    run_on(loop_, [&] {
      while (head.inbox.waiting() > 0) {
        beats_ += std::holds_alternative<control::Heartbeat>(head.inbox.request().body);
        head.inbox.answer();
      }
    });
  }
  /// Waits for a heartbeat that comes from now on.
  bool beats(HeadSocket& head) {
    const int before = on_loop(loop_, [&] { return beats_; });
    return support::eventually([&] {
      answer_all(head);
      return on_loop(loop_, [&] { return beats_ > before; });
    });
  }
  /// Joins a head that says yes.
  Status join(HeadSocket& head) {
    run_on(loop_, [&] { head.inbox.on_request = [&head] { head.inbox.answer(); }; });
    const Status status = connection_->join();
    run_on(loop_, [&] { head.inbox.on_request = nullptr; });
    return status;
  }

  Script script_{"starling"};
  EventLoop loop_;
  HeadConnectionOptions options_;
  std::vector<Status> lost_;
  int beats_ = 0;
  std::unique_ptr<HeadConnection> connection_;
};

// A node on another machine than the head.
class FarHeadTest : public HeadConnectionTest {
 protected:
  FarHeadTest() {
    head_.open();
    options_.head = head_.endpoint();
    options_.link.heartbeat = 1h;
  }
  HeadSocket head_{loop_, Endpoint::tcp("127.0.0.1", 0)};
};

TEST_F(FarHeadTest, JoinsThroughTheNodeNextToIt) {
  make();
  const Status status = join(head_);
  ASSERT_TRUE(status.ok()) << status.to_string();
  run_on(loop_, [&] {
    EXPECT_TRUE(connection_->is_up());
    EXPECT_EQ(connection_->reconnects(), 0u);
  });
}

TEST_F(FarHeadTest, SaysWhyTheHeadDoesNotTakeTheNode) {
  make();
  run_on(loop_, [&] {
    head_.inbox.on_request = [&] { head_.inbox.answer(invalid_argument("another cluster")); };
  });
  EXPECT_EQ(connection_->join(), invalid_argument("another cluster"));
  run_on(loop_, [&] { EXPECT_TRUE(lost_.empty()); });
}

TEST_F(FarHeadTest, RenewsTheLeaseOverAConnectionOfItsOwn) {
  options_.link.heartbeat = 2ms;
  make();
  ASSERT_TRUE(join(head_).ok());
  EXPECT_TRUE(connection_->keep_lease().ok());
  EXPECT_TRUE(comes_true(loop_, [&] { return head_.connections() == 2; }));
  EXPECT_TRUE(beats(head_));
  connection_->drop_lease();
  EXPECT_TRUE(comes_true(loop_, [&] { return head_.open_connections() == 1; }));
  run_on(loop_, [&] { EXPECT_TRUE(connection_->is_up()); });
}

TEST_F(FarHeadTest, EndsNoProcess) {
  make();
  bool ended = false;
  run_on(loop_, [&] {
    connection_->end_child([&] { ended = true; });
    EXPECT_TRUE(ended);
  });
}

// The node next to the head, whose process is a script; the test speaks for it.
class NearHeadTest : public HeadConnectionTest {
 protected:
  NearHeadTest() {
    HeadChildOptions child;
    child.program = script_.program();
    child.session_dir = script_.folder();
    child.socket = script_.folder() / "head.sock";
    child.token = "secret";
    child.restart_delay_first = 1ms;
    child.restart_delay_max = 5ms;
    options_.child = child;
    script_.write("echo \"$*\" >> $HERE/starts; echo $$ > $HERE/pid; exec sleep 60");
  }
  bool starts(std::size_t times) {
    return comes_true(loop_, [&] { return script_.lines("starts") >= times; });
  }

  /// Kills the head's process once it says who it is.
  void kill_head() {
    ASSERT_TRUE(comes_true(loop_, [&] { return script_.lines("pid") == 1; }));
    ASSERT_EQ(::kill(std::stoi(script_.text("pid")), SIGKILL), 0);
  }
  /// Why a request that does not wait is not answered.
  std::string refusal() {
    auto status = wait_for<ControlAnswer>(loop_, deadline_after(20s), [&](auto done) {
      run_on(loop_, [&] {
        connection_->request(ControlRequest{{}, 20s, control::KvGet{"a"}}, std::move(done),
                             HeadLink::Urgency::kNow);
      });
    });
    return status.status().message();
  }

  HeadSocket head_{loop_, *Endpoint::unix_socket((script_.folder() / "head.sock").string())};
};

TEST_F(NearHeadTest, StartsTheHeadAndJoinsIt) {
  head_.open();
  make();
  const Status status = join(head_);
  ASSERT_TRUE(status.ok()) << status.to_string();
  ASSERT_TRUE(starts(1));
  EXPECT_TRUE(connection_->keep_lease().ok());
  run_on(loop_, [&] { EXPECT_EQ(head_.connections(), 1u) << "it lives and dies with its head"; });
  kill_head();
  ASSERT_TRUE(starts(2));
  EXPECT_NE(script_.text("starts").find(" --again\n"), std::string::npos) << "it had worked";
  bool ended = false;
  run_on(loop_, [&] { connection_->end_child([&] { ended = true; }); });
  EXPECT_TRUE(comes_true(loop_, [&] { return ended; }));
}

TEST_F(NearHeadTest, AProgramThatCannotBeStartedFailsTheJoin) {
  std::filesystem::remove(script_.program());
  make();
  const Status status = connection_->join();
  EXPECT_TRUE(status.message().starts_with("starting the head: ")) << status.to_string();
}

TEST_F(NearHeadTest, AHeadThatCannotRunFailsTheJoin) {
  script_.write("echo the journal is of another cluster >&2; exit 3");
  make();
  const Status why = unavailable("the head cannot start: the journal is of another cluster");
  EXPECT_EQ(connection_->join(), why);
  run_on(loop_, [&] { EXPECT_EQ(lost_, std::vector<Status>{why}); });
}

TEST_F(NearHeadTest, RequestsThatDoNotWaitHearWhatKeepsTheHead) {
  options_.link.mute_max = 30ms;
  head_.open();
  make();
  ASSERT_TRUE(join(head_).ok());
  ASSERT_TRUE(starts(1));
  script_.write("echo the disk is full >&2; echo $$ > $HERE/failed; exit 3");
  head_.close();
  kill_head();
  std::string said;
  EXPECT_TRUE(support::eventually([&] {
    said = refusal();
    return said.find("the disk is full") != std::string::npos;
  })) << said;
}

TEST_F(NearHeadTest, WhatKeptTheHeadIsOverOnceItHasTakenTheNodeAgain) {
  options_.link.mute_max = 30ms;
  head_.open();
  make();
  ASSERT_TRUE(join(head_).ok());
  ASSERT_TRUE(starts(1));
  script_.write("echo the disk is full >&2; exit 3");
  head_.close();
  kill_head();
  const auto says_why = [&] { return refusal().find("the disk is full") != std::string::npos; };
  ASSERT_TRUE(support::eventually(says_why));
  script_.write("echo up > $HERE/up; exec sleep 60");
  ASSERT_TRUE(comes_true(loop_, [&] { return script_.text("up") == "up\n"; }));
  EXPECT_TRUE(says_why()) << "it runs, and has taken no node yet";
  run_on(loop_, [&] { head_.inbox.on_request = [&] { head_.inbox.answer(); }; });
  head_.open();
  ASSERT_TRUE(comes_true(loop_, [&] { return connection_->is_up(); }));
  head_.close();
  ASSERT_TRUE(comes_true(loop_, [&] { return !connection_->is_up(); }));
  EXPECT_FALSE(says_why());
}

}  // namespace
}  // namespace runtime
