// ResultLeases: the objects lent between this process and one actor: arguments to the actor,
// results to this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/core/ids.h"

namespace runtime {

class CallNumbers;

/// Arguments are lent until the actor says that it holds none of them any more, or its process is
/// gone. Not thread-safe, where nothing else is said.
class ResultLeases {
 public:
  ResultLeases() = default;
  ResultLeases(const ResultLeases&) = delete;
  ResultLeases& operator=(const ResultLeases&) = delete;

  void lend(std::uint64_t sequence, const ObjectValue& arguments) {
    lent_.emplace(sequence, arguments);
  }
  bool lends_arguments() const { return !lent_.empty(); }
  /// What the call lent, to be destroyed without a lock held; empty: nothing.
  ObjectValue take_back(std::uint64_t sequence);
  std::vector<ObjectValue> take_all_back();
  /// Calls visit(location, whether the call has no answer yet) for each object that is lent.
  void visit(const CallNumbers& numbers,
             const std::function<void(const ObjectLocation&, bool)>& visit) const;

  /// Whether results, or values of streams, that the actor lent are still held. Any thread.
  bool holds_results() const { return results_held_.load() > 0; }
  /// A loan of what a result refers to, which keeps `self`. When the last holder is gone, the
  /// actor is told over the connection that the result came by. With that connection the actor
  /// forgets the result. `lend_id`: the call's sequence, or a stream value's own number. Any
  /// thread.
  static std::shared_ptr<const void> hold(std::shared_ptr<ResultLeases> self,
                                          std::weak_ptr<Channel> channel, ActorId actor,
                                          std::uint64_t lend_id);

 private:
  class Loan;

  std::atomic<std::uint32_t> results_held_{0};
  std::map<std::uint64_t, ObjectValue> lent_;  // by sequence of the call
};

}  // namespace runtime
