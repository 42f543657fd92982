// OtherStore: the store of another node, as one that connects to it sees it; the test answers.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/store/object_wire.h"
#include "runtime/transport/listener.h"
#include "tests/runtime/transport/channel_pair.h"

namespace runtime {

/// A real port, and real connections. Where nothing else is said: on the loop.
class OtherStore {
 public:
  static Credentials credentials() {
    Credentials credentials;
    credentials.token = "secret";
    credentials.role = Role::kNode;
    return credentials;
  }

  /// Any thread.
  explicit OtherStore(EventLoop& loop) : loop_(loop) { open(Endpoint::tcp("127.0.0.1", 0)); }
  /// Any thread.
  std::string endpoint() const { return endpoint_.to_string(); }

  void open_again() { open(endpoint_); }
  void drop_connections() {
    for (const auto& channel : std::exchange(channels_, {})) channel->close(cancelled("lost"));
  }
  /// It is gone.
  void close() {
    if (listener_) listener_->stop();
    drop_connections();
  }
  std::size_t connections() const {
    std::size_t open = 0;
    for (const auto& channel : channels_) open += !channel->closed();
    return open;
  }
  std::size_t waiting() const { return asked_.size(); }

  /// Waits for a request, which is what it is expected to be: the oldest. Not on the loop.
  template <class T>
  T next() {
    if (!comes_true(loop_, [&] { return !asked_.empty(); })) {
      ADD_FAILURE() << "nothing is asked";
      return {};
    }
    return on_loop(loop_, [&] {
      auto request = object_wire::decode_request(asked_.front().second.meta);
      auto* wanted = request.ok() ? std::get_if<T>(&*request) : nullptr;
      if (!wanted) ADD_FAILURE() << "it is asked for something else";
      return wanted ? *wanted : T();
    });
  }
  /// Of the oldest. Not on the loop.
  void answer(Buffer meta, Payload payload = {}) {
    run_on(loop_, [&] {
      auto [channel, request] = std::move(asked_.front());
      asked_.pop_front();
      if (request.id != 0)
        (void)channel->send(reply_to(request, std::move(meta), std::move(payload)));
    });
  }
  void send(Message message) { (void)channels_.back()->send(std::move(message)); }
  void send(const object_wire::Request& request) {
    Message message;
    message.kind = FrameKind::kObject;
    message.meta = object_wire::encode_request(request);
    send(std::move(message));
  }

 private:
  void open(const Endpoint& at) {
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](const std::shared_ptr<Channel>& channel) {
      channels_.push_back(channel);
      channel->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
        asked_.emplace_back(from, std::move(message));
      });
    };
    auto listener = Listener::listen(loop_, at, credentials(), std::move(callbacks));
    ASSERT_TRUE(listener.ok()) << listener.status().to_string();
    listener_ = std::move(*listener);
    endpoint_ = listener_->endpoint();
  }

  EventLoop& loop_;
  Endpoint endpoint_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::deque<std::pair<std::shared_ptr<Channel>, Message>> asked_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace runtime
