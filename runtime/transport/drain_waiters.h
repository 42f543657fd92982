// DrainWaiters: callers that wait until little enough is queued on a connection.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/transport/unique_function.h"

namespace runtime {

/// Not thread-safe.
class DrainWaiters {
 public:
  using Drained = UniqueFunction<void()>;

  /// `drained` is due when at most `bytes` are queued.
  void add(std::size_t bytes, Drained drained) { waiting_.emplace_back(bytes, std::move(drained)); }
  bool are_due(std::size_t queued) const {
    return std::any_of(waiting_.begin(), waiting_.end(),
                       [&](const auto& waiting) { return queued <= waiting.first; });
  }
  std::vector<Drained> take_due(std::size_t queued) {
    std::vector<Drained> due;
    std::erase_if(waiting_, [&](auto& waiting) {
      if (queued > waiting.first) return false;
      due.push_back(std::move(waiting.second));
      return true;
    });
    return due;
  }

 private:
  std::vector<std::pair<std::size_t, Drained>> waiting_;
};

}  // namespace runtime
