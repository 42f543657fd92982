// Requests that the head answers later: when something happens, or at their deadline.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "runtime/transport/event_loop.h"

namespace runtime {

/// Answers kept by what they wait for. Cost of expire(): nothing until the earliest deadline, then
/// a look at each.
template <class Key, class Answer>
class Waiters {
 public:
  void add(const Key& key, Deadline deadline, Answer answer) {
    waiting_[key].push_back({deadline, std::move(answer)});
    earliest_ = std::min(earliest_, deadline);
  }

  /// Takes out everyone who waits for `key`.
  std::vector<Answer> take(const Key& key) {
    std::vector<Answer> taken;
    auto found = waiting_.find(key);
    if (found == waiting_.end()) return taken;
    for (Waiter& waiter : found->second) taken.push_back(std::move(waiter.answer));
    waiting_.erase(found);
    return taken;
  }

  /// Takes out those whose deadline has passed.
  std::vector<std::pair<Key, Answer>> expire(Deadline now) {
    std::vector<std::pair<Key, Answer>> expired;
    if (now < earliest_) return expired;
    earliest_ = Deadline::max();
    for (auto entry = waiting_.begin(); entry != waiting_.end();) {
      std::vector<Waiter> kept;
      for (Waiter& waiter : entry->second) {
        if (waiter.deadline <= now) {
          expired.emplace_back(entry->first, std::move(waiter.answer));
        } else {
          earliest_ = std::min(earliest_, waiter.deadline);
          kept.push_back(std::move(waiter));
        }
      }
      entry->second = std::move(kept);
      entry = entry->second.empty() ? waiting_.erase(entry) : std::next(entry);
    }
    return expired;
  }

  /// When expire() next has work; Deadline::max() if no request waits.
  Deadline earliest() const { return waiting_.empty() ? Deadline::max() : earliest_; }
  bool empty() const { return waiting_.empty(); }

 private:
  struct Waiter {
    Deadline deadline;
    Answer answer;
  };
  std::map<Key, std::vector<Waiter>> waiting_;
  Deadline earliest_ = Deadline::max();  // never later than the true one
};

}  // namespace runtime
