// HostContext: what all actors of a process share of the process that they run in.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <typeindex>

#include "runtime/call/actor_scope.h"
#include "runtime/call/caller_context.h"
#include "runtime/call/drain_hooks.h"
#include "runtime/call/fwd.h"
#include "runtime/call/state_hooks.h"
#include "runtime/worker/active_calls.h"
#include "runtime/worker/held_results.h"

namespace runtime {

class ActorExecutor;

struct ActorHostOptions {
  std::size_t calls_max = 1 << 20;  // in line; more are refused with kResourceExhausted
  /// Replies that wait to be read by a caller; beyond it that caller's further calls wait, until
  /// half of this is left.
  std::size_t unread_bytes_max = 16 << 20;
};

/// Makes an actor from encoded arguments. Exceptions of the actor's constructor pass through.
/// Errors: as Invoker.
using ActorMaker =
    std::function<Result<std::shared_ptr<void>>(Decoder& arguments, Deadline deadline)>;
/// Finds how the program makes an actor of a class from arguments of a signature. Null: it makes
/// none such. On the actor's thread, as what it finds.
using ActorMakers = std::function<ActorMaker(std::type_index type, std::string_view signature)>;

/// What actors ask of their process and of its node. Any thread.
class HostProcess {
 public:
  /// As Process::drain_notice and Process::set_resident.
  virtual std::optional<DrainNotice> drain_notice() const = 0;
  virtual void set_resident(ActorInstance actor) = 0;
  /// The actor waits for others: gives its share of the node back. It goes on without one.
  virtual void park(ActorId actor) = 0;

 protected:
  ~HostProcess() = default;
};

/// Each holder has a share of what keeps all of it alive. The executor outlives every stop() and
/// push() of an actor.
struct HostContext {
  EventLoop& loop;
  const Registry& registry;
  const std::shared_ptr<ActivityPage> activity;  // null: what the actors do is not seen
  BlockedCalls& blocked_calls;
  const std::atomic<bool>& shut_down;
  CallObjects& objects;
  const ObjectContextPtr object_context;  // of what is in calls
  StateKeeper& states;
  HostProcess& process;
  ActorExecutor& executor;
  const ActorMakers actor_makers;
  const ActorHostOptions options{};
  mutable HeldResults held{};
  mutable ActiveCalls active{};
};

}  // namespace runtime
