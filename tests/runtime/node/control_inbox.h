// ControlInbox: keeps the control requests that come over connections, until a test answers.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/control/control_channel.h"
#include "runtime/control/control_codec.h"
#include "runtime/transport/channel.h"

namespace runtime {

/// On the loop of the connections.
class ControlInbox {
 public:
  /// From now on also those of this connection.
  void serve(const std::shared_ptr<Channel>& channel) {
    channel->set_handler([this](const std::shared_ptr<Channel>& from, const Message& message) {
      if (message.kind == FrameKind::kControlEvent) {
        auto event = decode_control_event(message.meta);
        ASSERT_TRUE(event.ok()) << event.status().to_string();
        return events_.push_back(*std::move(event));
      }
      auto request = decode_control_request(message.meta);
      ASSERT_TRUE(request.ok()) << request.status().to_string();
      asked_.emplace_back(*std::move(request), answerer_for(from, message));
      if (on_request) on_request();
    });
  }

  std::size_t waiting() const { return asked_.size(); }
  const std::vector<ControlEvent>& events() const { return events_; }

  /// The oldest request that waits; its body is what it is expected to be.
  const ControlRequest& request() const { return asked_.front().first; }
  template <class T>
  T next() const {
    if (asked_.empty() || !std::holds_alternative<T>(request().body)) {
      ADD_FAILURE() << asked_.size() << " requests wait, the first is another";
      return {};
    }
    return std::get<T>(request().body);
  }
  void answer(Result<ControlAnswer> answer = ControlAnswer{}) { take()(std::move(answer)); }
  /// It is never answered.
  void ignore() { take(); }

  std::function<void()> on_request;  // one has come; may be empty

 private:
  ControlAnswerer take() {
    if (asked_.empty()) {
      ADD_FAILURE() << "no request waits";
      return [](const Result<ControlAnswer>&) {};
    }
    ControlAnswerer answerer = std::move(asked_.front().second);
    asked_.pop_front();
    return answerer;
  }

  std::deque<std::pair<ControlRequest, ControlAnswerer>> asked_;
  std::vector<ControlEvent> events_;
};

}  // namespace runtime
