// FakeHead: keeps what a node's parts ask the head, until a test answers.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "runtime/node/ask_head.h"

namespace runtime {

class FakeHead {
 public:
  AskHead ask() {
    return [this](ControlRequest request, ControlAnswerer answer) {
      asked_.emplace_back(std::move(request), std::move(answer));
    };
  }
  std::size_t waiting() const { return asked_.size(); }

  /// The oldest request that waits, as what it is expected to be.
  template <class T>
  T next() {
    if (asked_.empty() || !std::holds_alternative<T>(asked_.front().first.body)) {
      ADD_FAILURE() << asked_.size() << " requests wait, the first is another";
      return {};
    }
    return std::get<T>(asked_.front().first.body);
  }
  JobId job() const { return asked_.front().first.job; }
  void answer(Result<ControlAnswer> answer = ControlAnswer{}) {
    auto asked = std::move(asked_.front());
    asked_.pop_front();
    asked.second(std::move(answer));
  }

 private:
  std::deque<std::pair<ControlRequest, ControlAnswerer>> asked_;
};

}  // namespace runtime
