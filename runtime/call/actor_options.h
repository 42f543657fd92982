// ActorOptions and CallOptions: what can be said about an actor and about a call.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/call/caller_options.h"
#include "runtime/call/execution_options.h"
#include "runtime/call/fwd.h"
#include "runtime/control/membership.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace runtime {

/// How long a call may take if nothing else is said. Long, since training steps are; but no call
/// waits for ever.
inline constexpr std::chrono::hours kDefaultCallTimeout{1};

/// What an actor shares its process with.
enum class Isolation : std::uint8_t {
  kProcess,  // nothing: a crash takes it alone, kill ends it at once
  /// Other shared actors of its job on the node with the same env and threads. Costs about a KiB
  /// instead of a process. Each runs one call at a time, in order (unless max_concurrency says
  /// otherwise), next to the others on one thread per CPU. A crash takes them all; kill waits for
  /// no call but interrupts none either.
  kShared,
};

/// `ActorOptions options{.name = "trainer", .cpus = 2};` Size: a field a setting of `spawn`.
struct ActorOptions {
  std::string name{};  // to be found with Runtime::get_actor; empty: anonymous. Unique among the
                       // living of its namespace
  std::string name_space{};    // of the name; empty: the job's (RuntimeOptions::name_space)
  bool get_if_exists = false;  // spawn() returns the living actor of that name and class if there
                               // is one, and makes it otherwise
  /// No owner: it lives on when its creator, driver and job have ended, until it is killed or
  /// terminated. Needs a name and a namespace that others can say. References among its
  /// constructor's arguments are its creator's, and end with it.
  bool detached = false;
  /// How often the actor is started again after its process ended unasked, on whichever node has
  /// room; -1: always. Its constructor runs again with the same arguments (see docs/guide/actors.md
  /// for keeping state). Starts that follow one another fast are held back, at most 10 s.
  std::int32_t max_restarts = 0;
  /// How often a call that was lost with the actor's process (or with the connection) is sent
  /// again, in order, within its deadline; -1: always. Such a call may run more than once. Unless
  /// CallOptions say otherwise.
  std::int32_t max_task_retries = 0;
  double cpus = 0;  // reserved on its node while it lives; 0: it shares what is left
  double gpus = 0;
  ResourceMap resources{};    // further amounts, by name
  std::uint32_t threads = 0;  // of OpenMP and MKL in the worker; 0: as many as cpus, at least 1
  /// Calls run at once, each on its own thread; the class then guards its state itself. Calls
  /// of one caller still start in order.
  std::uint32_t max_concurrency = 1;
  /// More calls at once for some methods: `{{"io", 4}, {"compute", 1}}`, with methods assigned by
  /// `method(&T::m, {.concurrency_group = "io"})` at registration. Groups do not wait for each
  /// other; max_concurrency is for methods in none.
  ConcurrencyGroups concurrency_groups{};
  /// A call whose arguments are not there yet does not hold up calls that its caller made after it.
  /// Such an argument is an ObjectRef of a call that still runs. Each starts as soon as its own
  /// arguments are there. Otherwise calls of one caller start in the order in which they were made.
  bool out_of_order = false;
  /// Cores of its node that the actor's process is pinned to; empty: any.
  std::vector<std::uint32_t> cpu_affinity{};
  Environment env{};                   // variables added to the worker's environment
  std::optional<BundleSlot> bundle{};  // run in this bundle of a placement group
  std::optional<NodeId> node{};  // run there or nowhere; with node_is_preferred: elsewhere when it
                                 // has no room, or is gone
  bool node_is_preferred = false;
  /// Selectors that the node's labels (`starling start --label`) must meet: `{{"zone", "a"},
  /// {"kind", "in(fast, faster)"}, {"spot", "!*"}}`; "!a": not a,
  /// "!in(a, b)", "*": with any value, "!*": without.
  Labels labels{};
  ActorScheduling scheduling =
      ActorScheduling::kDefault;  // outside of bundles: together (kPack), or apart from others of
                                  // its class (kSpread)
  std::string log_prefix{};       // before its lines in the driver's output, instead of the class:
                                  // "(left pid=123) "
  Isolation isolation = Isolation::kProcess;

  /// For placing the actor and running its constructor, at each start.
  std::chrono::milliseconds create_timeout = std::chrono::minutes(5);
  /// For calls through the handle that spawn() returns, unless CallOptions say otherwise.
  std::chrono::milliseconds call_timeout = kDefaultCallTimeout;
  /// By method name, for all callers: `{{"step", 10min}, {"ask", 2s}}`. No call takes longer,
  /// whatever CallOptions or call_timeout say; nor than the timeout that a method was registered
  /// with. The tightest holds.
  MethodTimeouts method_timeouts{};

  /// Whether these can be meant: kInvalidArgument names the first option that cannot. spawn() asks;
  /// whether a node has what they ask for is another matter.
  Status check() const;
};

/// Of what an actor or a task reserves: kInvalidArgument names the first amount that is negative or
/// no number.
Status check_amounts(double cpus, double gpus, const ResourceMap& resources);

/// How much a caller wants a call to end.
enum class CancelMode {
  kCooperative,  // waiting, it never runs; running, it is told (CallContext), and ends when it
                 // looks
  kForce,  // as well; and if the actor has its own process that runs the call, that process is
           // ended
};

/// `handle.call(CallOptions{.timeout = 5s}, &Counter::add, 1)`
struct CallOptions {
  /// From the call to its reply, waiting in line and for arguments included. 0: the handle's
  /// call_timeout; below: it is too late already. A method's own timeout may be tighter.
  std::chrono::milliseconds timeout{0};
  /// At the latest then, whatever the timeout: for calls that a method makes for its caller,
  /// `{.until = call.deadline()}`. Nothing is inherited unasked: what a method starts may be meant
  /// to outlive the call that started it.
  Deadline until = Deadline::max();
  /// Of a method with a StreamWriter: how many values it may be ahead of the caller; at least 1.
  std::uint32_t stream_window = 64;
  /// Instead of the actor's. Below zero: without limit, until the deadline.
  std::optional<std::int32_t> max_task_retries{};

  /// What timeout and until come to, now. Zero: it is too late already.
  std::chrono::milliseconds timeout_or(std::chrono::milliseconds otherwise) const;
};

}  // namespace runtime
