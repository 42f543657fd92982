// Private to rl/rollout: the requests that an engine works on, from their sequences to their
// completions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "rl/rollout/engine_setting.h"
#include "rl/rollout/prefix_cache.h"
#include "rl/rollout/running_request.h"
#include "rl/rollout/scheduler.h"
#include "runtime/core/status.h"

namespace rl {

class OpenRequests {
 public:
  /// Borrows all. `prefixes_while_busy`: cleared when no request is left; may be null.
  OpenRequests(const EngineSetting& setting, Scheduler& scheduler, PrefixCache* prefixes_while_busy)
      : setting_(setting), scheduler_(scheduler), prefixes_while_busy_(prefixes_while_busy) {}

  /// Puts the sequences of a request in line; where `status` is an error, its samples finish by it.
  RequestId add(Request request, const runtime::Status& status, EngineProgress* progress);

  /// Of a sequence that has not finished.
  RunningRequest& of(const Sequence& sequence) {
    return *requests_.at(sequence.completion->request);
  }

  /// A sample, or all of a request; it is delivered with its last one.
  void finish(Sequence& sequence, FinishReason reason, runtime::Status status = {});
  void finish_all(RunningRequest& running, FinishReason reason, const runtime::Status& status = {});
  /// The request's completions are what they are to be.
  void deliver(RunningRequest& running);
  bool abort(RequestId id);
  void abort_all();

  /// All samples from the beginning.
  void restart_all();
  /// What was computed of sequences, which stay in line.
  void drop_computed();

  bool empty() const { return requests_.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(requests_.size()); }
  RequestId next_id() const { return next_id_; }
  std::vector<Completion> take_finished() { return std::exchange(finished_, {}); }
  /// Of the requests from `first` to before `end`, in their order.
  std::vector<Completion> take_finished(RequestId first, RequestId end);
  /// Frees what a step that is over may have looked at.
  void forget_delivered() { delivered_.clear(); }

 private:
  std::int64_t rank_of(const Request& request) const;
  void start(RunningRequest& running);
  void begin(RunningRequest& running);
  void go_on(RunningRequest& running);
  void restart(RunningRequest& running);

  const EngineSetting& setting_;
  Scheduler& scheduler_;
  PrefixCache* prefixes_while_busy_;
  std::map<RequestId, std::unique_ptr<RunningRequest>> requests_;
  std::vector<std::unique_ptr<RunningRequest>> delivered_;
  std::vector<Completion> finished_;
  RequestId next_id_ = 0;
  std::uint64_t next_order_ = 0;
};

}  // namespace rl
