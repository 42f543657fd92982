// CallNumbers: the sequence numbers of the calls sent to one actor, and which of those have ended.
#pragma once

#include <cstdint>
#include <set>

namespace runtime {

/// Not thread-safe.
class CallNumbers {
 public:
  /// Of the last call that was sent; 0: none was.
  std::uint64_t last() const { return last_; }
  /// The number of a further call.
  std::uint64_t take() { return ++last_; }
  /// The call has ended, or is sent again under another number.
  void end(std::uint64_t number);
  /// All calls up to this one have ended.
  std::uint64_t ended_up_to() const { return ended_up_to_; }
  bool has_ended(std::uint64_t number) const {
    return number <= ended_up_to_ || ended_beyond_.contains(number);
  }
  bool all_ended() const { return ended_up_to_ == last_; }

 private:
  std::uint64_t last_ = 0;
  std::uint64_t ended_up_to_ = 0;
  std::set<std::uint64_t> ended_beyond_;  // ended after an earlier one that has not
};

inline void CallNumbers::end(std::uint64_t number) {
  if (number <= ended_up_to_) return;
  if (number != ended_up_to_ + 1) {
    ended_beyond_.insert(number);
    return;
  }
  ++ended_up_to_;
  while (!ended_beyond_.empty() && *ended_beyond_.begin() == ended_up_to_ + 1) {
    ++ended_up_to_;
    ended_beyond_.erase(ended_beyond_.begin());
  }
}

}  // namespace runtime
