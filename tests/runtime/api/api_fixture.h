// A program's connection to a node that answers as the test says.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/api/connection.h"
#include "runtime/call/process.h"
#include "tests/runtime/control/fake_node.h"

namespace runtime::test {

class ApiTest : public ::testing::Test {
 protected:
  ApiTest()
      : node_([this](const ControlRequest::Body& body, ControlAnswerer& answer) {
          std::lock_guard lock(mutex_);
          asked_.push_back(body);
          answer(answer_);
          return true;
        }) {
    auto registry = std::make_shared<Registry>();
    registry->seal();
    connection_.process = Process::make(registry);
    connection_.process->attach(node_.connect(connection_.process->loop(), Role::kDriver));
  }
  ~ApiTest() override { connection_.process->shut_down(); }

  /// Of all requests from now on.
  void set_answer(Result<ControlAnswer> answer) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  /// The last request, which is expected to be of that kind.
  template <class T>
  T asked() {
    std::lock_guard lock(mutex_);
    const T* last = asked_.empty() ? nullptr : std::get_if<T>(&asked_.back());
    EXPECT_TRUE(last) << "it was not asked for that";
    return last ? *last : T();
  }
  /// The same of requests about objects.
  template <class T>
  T asked_about_objects() {
    const auto body = asked<ObjectControl>();
    EXPECT_TRUE(std::holds_alternative<T>(body));
    return std::holds_alternative<T>(body) ? std::get<T>(body) : T();
  }
  std::size_t requests() {
    std::lock_guard lock(mutex_);
    return asked_.size();
  }

  std::mutex mutex_;
  std::vector<ControlRequest::Body> asked_;
  Result<ControlAnswer> answer_ = ControlAnswer{};
  FakeNode node_;
  Connection connection_;
};

}  // namespace runtime::test
