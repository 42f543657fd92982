// FakeNode: a node as those that connect to it see it; the test answers what they ask.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/control/node_client.h"
#include "runtime/transport/listener.h"
#include "tests/support/on_loop.h"

namespace runtime {

/// A real port and real connections, on a separate loop. Not to be used on that loop, where
/// nothing else is said.
class FakeNode {
 public:
  /// Whether it has answered the request, which then waits for no test. On the node's loop.
  using FirstLook = std::function<bool(const ControlRequest::Body& body, ControlAnswerer& answer)>;

  explicit FakeNode(FirstLook first_look = {}) : first_look_(std::move(first_look)) {
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](const std::shared_ptr<Channel>& channel) {
      channels_.push_back(channel);
      channel->set_handler([this](const std::shared_ptr<Channel>& from, const Message& message) {
        if (message.kind == FrameKind::kControl) receive(from, message);
      });
    };
    Credentials credentials;
    credentials.token = kToken;
    credentials.role = Role::kNode;
    credentials.node = id;
    auto listener =
        Listener::listen(loop_, Endpoint::tcp("127.0.0.1", 0), credentials, std::move(callbacks));
    EXPECT_TRUE(listener.ok()) << listener.status().to_string();
    listener_ = std::move(*listener);
    endpoint_ = listener_->endpoint();
  }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;
  ~FakeNode() { close(); }

  static constexpr const char* kToken = "secret";

  const Endpoint& endpoint() const { return endpoint_; }
  /// Null: it cannot be reached.
  std::unique_ptr<NodeClient> connect(EventLoop& loop, Role role = Role::kTool) const {
    ClusterAddress address;
    address.address = endpoint_.to_string();
    address.token = kToken;
    auto client =
        NodeClient::connect(loop, address, role, deadline_after(std::chrono::seconds(20)));
    EXPECT_TRUE(client.ok()) << client.status().to_string();
    return client.ok() ? *std::move(client) : nullptr;
  }
  /// It is gone.
  void close() {
    run_on(loop_, [&] {
      listener_.reset();
      for (const auto& channel : std::exchange(channels_, {})) channel->close(cancelled("gone"));
      asked_.clear();
    });
    run_on(loop_, [] {});  // what that closed
  }

  /// Those that are connected hear of it: said while it answers, after the answer. Any thread.
  void tell(ControlEvent event) {
    loop_.post([this, event = std::move(event)] {
      for (const auto& channel : channels_) {
        if (!channel->closed()) send_event(*channel, event);
      }
    });
  }
  /// Closes the connections that there are, in the same order. Any thread.
  void hang_up() {
    loop_.post([this] {
      for (const auto& channel : std::exchange(channels_, {})) channel->close(cancelled("gone"));
    });
  }

  /// Waits for a request of that kind: the oldest.
  template <class T>
  T next() {
    if (!comes_true(loop_, [&] { return find<T>() != asked_.end(); })) {
      ADD_FAILURE() << "it is not asked for that";
      return {};
    }
    return on_loop(loop_, [&] { return std::get<T>(find<T>()->body); });
  }
  /// The oldest of that kind.
  template <class T>
  void answer(Result<ControlAnswer> answer = ControlAnswer{}) {
    run_on(loop_, [&] {
      const auto at = find<T>();
      ASSERT_TRUE(at != asked_.end()) << "nothing waits for that answer";
      ControlAnswerer answerer = std::move(at->answer);
      asked_.erase(at);
      answerer(std::move(answer));
    });
  }
  template <class T>
  std::size_t waiting() {
    return on_loop(loop_, [&] {
      return static_cast<std::size_t>(std::count_if(asked_.begin(), asked_.end(), is<T>));
    });
  }

  const NodeId id = NodeId::random();

 private:
  struct Asked {
    ControlRequest::Body body;
    ControlAnswerer answer;
  };

  template <class T>
  static bool is(const Asked& asked) {
    return std::holds_alternative<T>(asked.body);
  }
  template <class T>
  std::list<Asked>::iterator find() {
    return std::find_if(asked_.begin(), asked_.end(), is<T>);
  }
  void receive(const std::shared_ptr<Channel>& from, const Message& message) {
    auto request = decode_control_request(message.meta);
    ASSERT_TRUE(request.ok()) << request.status().to_string();
    ControlAnswerer answer = answerer_for(from, message);
    if (first_look_ && first_look_(request->body, answer)) return;
    asked_.push_back({std::move(request->body), std::move(answer)});
  }

  const FirstLook first_look_;
  EventLoop loop_;
  Endpoint endpoint_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::list<Asked> asked_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace runtime
