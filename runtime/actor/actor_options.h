// ActorOptions and CallOptions: what can be said about an actor and about a call.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/actor/execution_options.h"
#include "runtime/core/ids.h"
#include "runtime/node/membership.h"

namespace runtime {

/// How long a call may take if nothing else is said. Long, since training steps are; but no call waits for ever.
inline constexpr std::chrono::hours kDefaultCallTimeout{1};

/// `ActorOptions options{.name = "trainer", .cpus = 2};`
struct ActorOptions {
  std::string name{};                  // to be found with Runtime::get_actor; empty: anonymous. Unique in the cluster
  double cpus = 0;                   // reserved on its node while it lives; 0: it shares what is left
  double gpus = 0;
  ResourceMap resources{};             // further amounts, by name
  std::uint32_t threads = 0;         // of OpenMP and MKL in the worker; 0: as many as cpus, at least 1
  /// Calls run at once, each on a thread of its own; the class then guards its state itself. Calls of one caller still start in order.
  std::uint32_t max_concurrency = 1;
  /// More calls at once for some methods: `{{"io", 4}, {"compute", 1}}`, with methods assigned by `method(&T::m, {.concurrency_group = "io"})` at
  /// registration. Groups do not wait for each other; max_concurrency is for methods in none.
  ConcurrencyGroups concurrency_groups{};
  /// Cores of its node that the actor's process is pinned to; empty: any.
  std::vector<std::uint32_t> cpu_affinity{};
  Environment env{};                   // variables added to the worker's environment
  std::optional<BundleSlot> bundle{};  // run in this bundle of a placement group
  std::optional<NodeId> node{};        // run there or nowhere
  Labels labels{};                     // the node must have these

  /// For placing the actor and running its constructor.
  std::chrono::milliseconds create_timeout = std::chrono::minutes(5);
  /// For calls through the handle that spawn() returns, unless CallOptions say otherwise.
  std::chrono::milliseconds call_timeout = kDefaultCallTimeout;
};

/// How much a caller wants a call to end.
enum class CancelMode {
  kCooperative,  // waiting, it never runs; running, it is told (CallContext), and ends when it looks
  kForce,        // as well; and if the actor has a process of its own that runs the call, that process is ended
};

/// `handle.call(CallOptions{.timeout = 5s}, &Counter::add, 1)`
struct CallOptions {
  /// From the call to its reply, waiting in line and for arguments included. 0: the handle's call_timeout.
  std::chrono::milliseconds timeout{0};
  /// Of a method with a StreamWriter: how many values it may be ahead of the caller; at least 1.
  std::uint32_t stream_window = 64;
};

}  // namespace runtime
