// Tokens that are changed while processes talk.
#include "runtime/transport/keyring.h"

#include "fixture.h"
#include "tests/support/eventually.h"

namespace runtime {
namespace {

TEST(Keyring, CopiesHearOfAChangeAndAssignmentMakesAnother) {
  Keyring keyring("old");
  const Keyring copy = keyring;
  Keyring other = keyring;
  other = "another";
  keyring.change({"new", 1, {{"old", deadline_after(seconds(60))}}});
  EXPECT_EQ(copy.present(), "new");
  EXPECT_EQ(copy.accepted(), (std::vector<std::string>{"new", "old"}));
  EXPECT_EQ(copy.tokens().version, 1u);
  EXPECT_EQ(other.accepted(), std::vector<std::string>{"another"});
}

TEST(Keyring, AReplacedTokenCountsForItsTime) {
  Keyring keyring("old");
  keyring.change({"new", 1, {{"old", deadline_after(milliseconds(500))}}});
  EXPECT_EQ(keyring.accepted().size(), 2u);
  EXPECT_TRUE(
      support::eventually([&] { return keyring.accepted() == std::vector<std::string>{"new"}; }));
  EXPECT_TRUE(keyring.tokens().also.empty());
}

TEST(Keyring, WhatIsExpectedCountsUntilTheNextChange) {
  Keyring keyring("old");
  keyring.expect("next");
  EXPECT_EQ(keyring.present(), "old");
  EXPECT_EQ(keyring.accepted(), (std::vector<std::string>{"old", "next"}));
  keyring.change({"old", 0});
  EXPECT_EQ(keyring.accepted(), std::vector<std::string>{"old"});
}

/// A listener and callers, each with their own tokens.
class TokensTest : public ::testing::Test {
 protected:
  void listen(const Keyring& keyring) {
    Credentials credentials = credentials_of(Role::kNode);
    credentials.token = keyring;
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](std::shared_ptr<Channel> channel) {
      served_.push_back(std::move(channel));
    };
    ListenerOptions options;
    options.admits_submitters = true;
    auto bound = Listener::listen(server_loop_, Endpoint::tcp("127.0.0.1", 0), credentials,
                                  std::move(callbacks), options);
    ASSERT_TRUE(bound.ok()) << bound.status().to_string();
    listener_ = std::move(*bound);
  }
  void TearDown() override {
    Event done(client_loop_);
    server_loop_.post([&] {
      for (const auto& channel : served_) channel->close(cancelled("test over"));
      done.set();
    });
    client_loop_.run_until(done, deadline_after(seconds(10)));
  }

  Result<std::shared_ptr<Channel>> call(const Keyring& keyring, Role role = Role::kTool,
                                        bool lasting = false) {
    Credentials credentials = credentials_of(role);
    credentials.token = keyring;
    ConnectOptions options;
    options.lasting = lasting;
    return connect(client_loop_, listener_->endpoint(), credentials, options);
  }
  ErrorCode outcome(const Keyring& keyring) {
    auto channel = call(keyring);
    if (channel.ok()) (*channel)->close(cancelled("that was all"));
    return channel.status().code();
  }

  EventLoop server_loop_;
  EventLoop client_loop_;
  std::vector<std::shared_ptr<Channel>> served_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(TokensTest, BothCountWhileAChangeIsKnownToTheCalleeAlone) {
  Keyring callee("old");
  listen(callee);
  EXPECT_EQ(outcome("old"), ErrorCode::kOk);
  EXPECT_EQ(outcome("new"), ErrorCode::kInvalidArgument);
  callee.change({"new", 1, {{"old", deadline_after(seconds(60))}}});
  EXPECT_EQ(outcome("old"), ErrorCode::kOk);
  EXPECT_EQ(outcome("new"), ErrorCode::kOk);
  EXPECT_EQ(outcome("neither"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(outcome(submitter_token("old")), ErrorCode::kOk);
  EXPECT_EQ(outcome(submitter_token("new")), ErrorCode::kOk);
  EXPECT_EQ(outcome(submitter_token("neither")), ErrorCode::kInvalidArgument);
}

TEST_F(TokensTest, TheReplacedOneIsRefusedWhenItsTimeIsOver) {
  Keyring callee("old");
  listen(callee);
  auto before = call("old");
  ASSERT_TRUE(before.ok());
  callee.change({"new", 1, {{"old", deadline_after(milliseconds(1))}}});
  ASSERT_TRUE(support::eventually([&] { return callee.accepted().size() == 1; }));
  const auto refused = call("old");
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("the token was changed"), std::string::npos)
      << refused.status().to_string();
  EXPECT_EQ(outcome(submitter_token("old")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(outcome("new"), ErrorCode::kOk);
  EXPECT_FALSE((*before)->closed()) << "connections that there are go on";
  (*before)->close(cancelled("test over"));
}

TEST_F(TokensTest, ACallerThatKnowsTheChangeFirstGoesOnWithTheOldOne) {
  listen("old");
  Keyring caller("old");
  caller.change({"new", 1, {{"old", deadline_after(seconds(60))}}});
  EXPECT_EQ(outcome(caller), ErrorCode::kOk);
  Keyring late("old");
  late.change({"new", 1});
  EXPECT_EQ(outcome(late), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace runtime
