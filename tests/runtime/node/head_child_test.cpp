#include "runtime/node/head_child.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

#include "tests/runtime/node/script.h"
#include "tests/runtime/transport/channel_pair.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

// The head is a script, which notes each of its starts.
class HeadChildTest : public ::testing::Test {
 protected:
  ~HeadChildTest() override {
    run_on(loop_, [&] { child_.reset(); });
  }
  void make(const std::string& does) {
    script_.write("echo \"$*\" >> $HERE/starts\n" + does);
    HeadChildOptions options;
    options.program = script_.program();
    options.cluster = ClusterId::random();
    options.node = NodeId::random();
    options.session_dir = script_.folder();
    options.socket = script_.folder() / "head.sock";
    options.journal = script_.folder() / "journal";
    options.durable = true;
    options.token = "secret";
    options.restart_delay_first = 1ms;
    options.restart_delay_max = 5ms;
    cluster_ = options.cluster;
    run_on(loop_, [&] {
      child_ = std::make_unique<HeadChild>(
          loop_, std::move(options), [this](Status why) { failed_.push_back(std::move(why)); });
    });
  }
  Status start() {
    return on_loop(loop_, [&] { return child_->start(); });
  }
  void confirm() {
    run_on(loop_, [&] { child_->confirm(); });
  }
  bool starts(std::size_t times) {
    return comes_true(loop_, [&] { return script_.lines("starts") >= times; });
  }
  std::int32_t pid() {
    return on_loop(loop_, [&] { return child_->pid(); });
  }
  void end() {
    run_on(loop_, [&] { child_->end([this] { ended_ = true; }); });
    EXPECT_TRUE(comes_true(loop_, [&] { return ended_; }));
  }

  Script script_{"starling"};
  EventLoop loop_;
  ClusterId cluster_;
  std::vector<Status> failed_;
  bool ended_ = false;
  std::unique_ptr<HeadChild> child_;
};

TEST_F(HeadChildTest, StartsTheHeadWithWhatItNeeds) {
  make(
      "cat $STARLING_TOKEN_FILE > $HERE/token; echo \"$STARLING_TOKEN\" > $HERE/variable\n"
      "echo said; echo complained >&2; echo up > $HERE/up; exec sleep 60");
  ASSERT_TRUE(start().ok());
  EXPECT_TRUE(comes_true(loop_, [&] { return script_.text("up") == "up\n"; }));
  const std::string folder = script_.folder().string();
  const std::string arguments = script_.text("starts");
  EXPECT_TRUE(arguments.starts_with("head --cluster " + cluster_.hex() + " --node ")) << arguments;
  EXPECT_TRUE(arguments.ends_with(" --socket " + folder + "/head.sock --journal " + folder +
                                  "/journal --durable\n"))
      << arguments;
  EXPECT_EQ(script_.text("token"), "secret");
  EXPECT_EQ(script_.text("variable"), "\n") << "not where other users may see it";
  EXPECT_TRUE(comes_true(loop_, [&] {
    const std::string log = script_.text("logs/head.log");
    return log.find("said\n") != std::string::npos && log.find("complained\n") != std::string::npos;
  }));
}

TEST_F(HeadChildTest, AProgramThatIsNotThereIsSaidAtOnce) {
  make("");
  std::filesystem::remove(script_.program());
  run_on(loop_, [&] {
    HeadChildOptions options;
    options.program = script_.program();
    options.session_dir = script_.folder();
    child_ = std::make_unique<HeadChild>(loop_, std::move(options), nullptr);
  });
  const Status status = start();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(status.message().starts_with("starting the head: ")) << status.message();
  EXPECT_EQ(pid(), 0);
}

TEST_F(HeadChildTest, AHeadThatDiesIsStartedAgainAndToldOnceItHasWorked) {
  make("exit 1");
  ASSERT_TRUE(start().ok());
  EXPECT_TRUE(starts(2));
  EXPECT_EQ(script_.text("starts").find("--again"), std::string::npos);
  confirm();
  EXPECT_TRUE(comes_true(loop_, [&] {
    return script_.text("starts").find(" --again\n") != std::string::npos;
  })) << "it is to go on with its journal";
  run_on(loop_, [&] { EXPECT_TRUE(failed_.empty()); });
}

TEST_F(HeadChildTest, OneThatIsKilledIsStartedAgain) {
  make("exec sleep 60");
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starts(1));
  const std::int32_t first = pid();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(starts(2));
  EXPECT_NE(pid(), first);
}

TEST_F(HeadChildTest, OneThatCannotStartIsNotTriedAgain) {
  make("for line in one two three four; do echo $line >&2; done; exit 3");
  ASSERT_TRUE(start().ok());
  EXPECT_TRUE(comes_true(loop_, [&] { return !failed_.empty(); }));
  run_on(loop_, [&] {
    EXPECT_EQ(failed_, std::vector<Status>{unavailable("the head cannot start: two\nthree\nfour")});
    EXPECT_TRUE(child_->trouble().ok());
  });
  EXPECT_EQ(script_.lines("starts"), 1u);
}

TEST_F(HeadChildTest, OneThatHasWorkedIsTriedAgainWhateverKeepsIt) {
  make("exec sleep 60");
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starts(1));
  confirm();
  script_.write("echo again >> $HERE/starts; echo the disk is full >&2; exit 3");
  ASSERT_EQ(::kill(pid(), SIGKILL), 0);
  EXPECT_TRUE(starts(3));
  script_.write("echo \"$*\" >> $HERE/lives; exec sleep 60");
  EXPECT_TRUE(comes_true(loop_, [&] { return script_.lines("lives") == 1; }));
  run_on(loop_, [&] { EXPECT_TRUE(failed_.empty()); });
}

TEST_F(HeadChildTest, SaysWhatKeepsItFromStarting) {
  make("exec sleep 60");
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starts(1));
  confirm();
  run_on(loop_, [&] { EXPECT_TRUE(child_->trouble().ok()); });
  script_.write("echo again >> $HERE/starts; exit 3");
  ASSERT_EQ(::kill(pid(), SIGKILL), 0);
  EXPECT_TRUE(comes_true(loop_, [&] { return !child_->trouble().ok(); }));
}

TEST_F(HeadChildTest, WhatKeptItFromStartingIsSaidUntilItWorksAgain) {
  make("exec sleep 60");
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starts(1));
  confirm();
  script_.write("echo again >> $HERE/starts; echo the disk is full >&2; exit 3");
  ASSERT_EQ(::kill(pid(), SIGKILL), 0);
  const Status full = unavailable("the head cannot start: the disk is full");
  EXPECT_TRUE(comes_true(loop_, [&] { return child_->trouble() == full; }));
  script_.write("echo \"$*\" >> $HERE/lives; exec sleep 60");
  ASSERT_TRUE(comes_true(loop_, [&] { return script_.lines("lives") == 1; }));
  run_on(loop_, [&] { EXPECT_EQ(child_->trouble(), full) << "it may fail once more"; });
  confirm();
  run_on(loop_, [&] { EXPECT_TRUE(child_->trouble().ok()); });
}

TEST_F(HeadChildTest, EndedTwiceItTellsBoth) {
  make("trap 'exit 0' TERM; echo up > $HERE/up\nwhile :; do sleep 0.01; done");
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(comes_true(loop_, [&] { return script_.text("up") == "up\n"; }));
  int ended = 0;
  run_on(loop_, [&] {
    child_->end([&] { ++ended; });
    child_->end([&] { ++ended; });
  });
  EXPECT_TRUE(comes_true(loop_, [&] { return ended == 2; }));
  run_on(loop_, [&] { child_->end([&] { ++ended; }); });
  EXPECT_EQ(ended, 3) << "it is gone";
}

TEST_F(HeadChildTest, OneThatFailsWhileItIsEndedIsNotReported) {
  make("trap 'exit 3' TERM; echo up > $HERE/up\nwhile :; do sleep 0.01; done");
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(comes_true(loop_, [&] { return script_.text("up") == "up\n"; }));
  end();
  run_on(loop_, [&] { EXPECT_TRUE(failed_.empty()); });
}

TEST_F(HeadChildTest, EndsItInOrderAndStartsItNoMore) {
  make(
      "trap 'echo closed > $HERE/closed; exit 0' TERM; echo up > $HERE/up\n"
      "while :; do sleep 0.01; done");
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(comes_true(loop_, [&] { return script_.text("up") == "up\n"; }));
  end();
  EXPECT_EQ(script_.text("closed"), "closed\n");
  EXPECT_EQ(script_.lines("starts"), 1u);
}

TEST_F(HeadChildTest, EndsBetweenTwoStarts) {
  make("exit 1");
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(starts(1));
  end();
  const std::size_t times = script_.lines("starts");
  ended_ = false;
  end();
  EXPECT_EQ(script_.lines("starts"), times);
}

}  // namespace
}  // namespace runtime
