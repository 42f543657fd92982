// ObjectContext: the parts of a process that its objects and handles share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/call/fwd.h"
#include "runtime/codec/decoder.h"
#include "runtime/core/clock.h"
#include "runtime/core/result.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

struct ActorAddress;

/// Makes what messages refer to known in this process. Any thread.
class ReferenceMaker {
 public:
  /// An object of another process. `indirect`: a process that does not own it passed it on.
  virtual std::shared_ptr<StoredObject> borrow(ObjectLocation location, bool indirect) = 0;
  /// An object that no process has lent, such as a published one. `done` once, on the loop or at
  /// once, after the node there has learned of it. Errors: as ObjectClient::borrow_and_confirm.
  virtual void borrow_confirmed(
      const ObjectLocation& location, Deadline deadline,
      UniqueFunction<void(Result<std::shared_ptr<StoredObject>>)> done) = 0;
  /// As ObjectClient::remake.
  virtual void remake(const ObjectLocation& lost, const std::string& keeper, Deadline deadline,
                      UniqueFunction<void(Result<ObjectLocation>)> done) = 0;
  virtual std::shared_ptr<ActorClient> client_for(const ActorAddress& address) = 0;

 protected:
  ~ReferenceMaker() = default;
};

/// Each holder has a share of what keeps all of it alive.
struct ObjectContext : DecodeContext {
  ObjectContext(EventLoop& loop_, BlockedCalls& blocked_calls_, const std::atomic<bool>& shut_down_,
                ReferenceMaker& references_)
      : loop(loop_),
        blocked_calls(blocked_calls_),
        shut_down(shut_down_),
        references(references_) {}

  EventLoop& loop;
  BlockedCalls& blocked_calls;
  const std::atomic<bool>& shut_down;
  ReferenceMaker& references;
  /// Objects that are in this process itself, or have no value yet.
  mutable std::atomic<std::uint64_t> inline_objects{0};

  void count_inline(int change) const {
    inline_objects.fetch_add(static_cast<std::uint64_t>(change), std::memory_order_relaxed);
  }
};

}  // namespace runtime
