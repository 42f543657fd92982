// TurnedDisk: a clock and a disk that do what the test tells them, for parts of a store.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "tests/support/turned_clock.h"

namespace runtime {

class TurnedDisk final : public support::TurnedClock {
 public:
  std::uint64_t use_disk(std::function<void(int error)> operation) override {
    operations_.emplace_back(++last_, std::move(operation));
    return last_;
  }
  void forget(std::uint64_t id) override {
    std::erase_if(operations_, [&](const auto& operation) { return operation.first == id; });
    TurnedClock::forget(id);
  }

  /// Those that the disk has not come to.
  std::size_t waiting() const { return operations_.size(); }
  /// The disk comes to the oldest, which finds that error (of errno); 0: none.
  void operate(int error = 0) {
    ASSERT_FALSE(operations_.empty()) << "nothing waits for the disk";
    auto operation = std::move(operations_.front().second);
    operations_.pop_front();
    operation(error);
    settle();
  }
  void operate_all() {
    while (waiting() > 0) operate();
  }

 private:
  // Apart from the numbers of alarms.
  std::uint64_t last_ = std::uint64_t{1} << 62;
  std::deque<std::pair<std::uint64_t, std::function<void(int)>>> operations_;
};

}  // namespace runtime
