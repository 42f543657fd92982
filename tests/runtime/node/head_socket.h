// HeadSocket: the address at which a node's parts find a head, which comes and goes as the test
// says.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/listener.h"
#include "tests/runtime/node/control_inbox.h"
#include "tests/runtime/transport/channel_pair.h"

namespace runtime {

/// Its requests wait in the inbox, where the test answers them as the head. Not on the loop, where
/// nothing else is said.
class HeadSocket {
 public:
  /// Nothing is there yet.
  HeadSocket(EventLoop& loop, Endpoint at) : loop_(loop), at_(std::move(at)) {}
  ~HeadSocket() { close(); }

  static Credentials credentials(Role role = Role::kNode) {
    Credentials credentials;
    credentials.token = "secret";
    credentials.role = role;
    return credentials;
  }

  /// A head runs there, itself or behind the node next to it.
  void open(const std::string& token = "secret") {
    ListenerCallbacks callbacks;
    callbacks.on_refused = [this](const std::string&, const Status&) { ++refused_; };
    callbacks.on_channel = [this](const std::shared_ptr<Channel>& channel) {
      channels_.push_back(channel);
      inbox.serve(channel);
    };
    Credentials own = credentials();
    own.token = token;
    own.worker = head_target();  // as the head behind its node
    auto listener = Listener::listen(loop_, at_, own, std::move(callbacks));
    ASSERT_TRUE(listener.ok()) << listener.status().to_string();
    run_on(loop_, [&] { listener_ = std::move(*listener); });
    at_ = listener_->endpoint();
  }
  /// As when its process dies.
  void close() {
    run_on(loop_, [&] {
      listener_.reset();
      drop_connections();
    });
    run_on(loop_, [] {});  // what that closed
  }
  /// On the loop.
  void drop_connections() {
    for (const auto& channel : std::exchange(channels_, {})) channel->close(cancelled("died"));
  }

  const Endpoint& endpoint() const { return at_; }
  /// Ever, and that are open still. On the loop.
  std::size_t connections() const { return channels_.size(); }
  std::size_t open_connections() const {
    std::size_t open = 0;
    for (const auto& channel : channels_) open += !channel->closed();
    return open;
  }
  /// Callers that showed another token. On the loop.
  int refused() const { return refused_; }
  /// The latest connection. On the loop.
  Channel& channel() { return *channels_.back(); }

  /// Waits for a request, which is what it is expected to be: the oldest.
  template <class T>
  T next() {
    EXPECT_TRUE(comes_true(loop_, [&] { return inbox.waiting() > 0; })) << "nothing is asked";
    return on_loop(loop_, [&] { return inbox.next<T>(); });
  }
  void answer(Result<ControlAnswer> answer = ControlAnswer{}) {
    run_on(loop_, [&] { inbox.answer(std::move(answer)); });
  }

  ControlInbox inbox;  // on the loop

 private:
  EventLoop& loop_;
  Endpoint at_;
  int refused_ = 0;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace runtime
