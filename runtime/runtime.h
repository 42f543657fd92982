// Starling's runtime: actors in processes, calls between them, objects in shared memory. This is
// the only header that a program includes.
//
//   struct Counter {
//     int add(int n) { return total += n; }
//     int total = 0;
//   };
//
//   int driver_main(runtime::Runtime& rt) {
//     auto counter = rt.spawn<Counter>({.name = "counter"});
//     if (!counter.ok()) return 1;
//     auto total = rt.get(counter->call(&Counter::add, 2));  // Result<int>
//     return total.ok() ? 0 : 1;
//   }
//
//   int main(int argc, char** argv) {
//     runtime::Runtime rt(argc, argv);
//     rt.register_actor<Counter>("Counter", &Counter::add);
//     // In a worker process this serves actors, and never calls driver_main.
//     return rt.run(driver_main);
//   }
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include "runtime/api/cluster.h"
#include "runtime/api/key_values.h"
#include "runtime/api/objects.h"
#include "runtime/api/placement_groups.h"
#include "runtime/api/published_objects.h"
#include "runtime/api/until.h"
#include "runtime/call/actor_group.h"
#include "runtime/call/actor_handle.h"
#include "runtime/call/actor_options.h"
#include "runtime/call/call_context.h"
#include "runtime/call/completion.h"
#include "runtime/call/death_ref.h"
#include "runtime/call/object_ref.h"
#include "runtime/call/object_view.h"
#include "runtime/call/pending_actor.h"
#include "runtime/call/placement_group.h"
#include "runtime/call/published.h"
#include "runtime/call/registry.h"
#include "runtime/call/scoped_actor.h"
#include "runtime/call/stream.h"
#include "runtime/call/task.h"
#include "runtime/call/watch.h"
#include "runtime/codec/array_view.h"
#include "runtime/codec/codec.h"
#include "runtime/constructor_table.h"
#include "runtime/control/membership.h"
#include "runtime/control/object_info.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace runtime {

struct RuntimeOptions {
  /// The namespace of the job's actors, unless ActorOptions give another. Empty: a namespace only
  /// for this job, so that two runs of a program on one cluster do not share actors.
  std::string name_space{};
  /// HOST:PORT of a node. Empty: `--address` among the arguments, else STARLING_ADDRESS, else the
  /// last `starling start` on this machine.
  std::string address;
  /// If no cluster is found: start one on this machine, which ends with this Runtime. If false,
  /// start() fails with kNotFound instead.
  bool start_cluster = true;
  /// Arguments for starting such a cluster, for instance {"--num-cpus", "8"}.
  std::vector<std::string> start_arguments;
  /// Print what the workers write, with a prefix "(Counter pid=123, node=7f3a0011) ".
  bool forward_output = true;
  /// Print a line that several workers write within five seconds once, then the number of its
  /// repetitions. STARLING_DEDUP_LOGS=0 turns this off too.
  bool deduplicate_output = true;
  /// Worker processes to start before the first spawn.
  std::uint32_t warm_workers = 0;
  /// The memory per process for recomputing lost results of tasks (docs/guide/actors.md); beyond it
  /// the oldest results cannot be recomputed.
  std::size_t lineage_bytes_max = 256 << 20;
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
};

/// Which objects were settled in time and which were not, both in their original order.
template <class T>
struct WaitResult {
  std::vector<ObjectRef<T>> ready;
  std::vector<ObjectRef<T>> pending;
};

/// How long get_actor() waits by default.
inline constexpr std::chrono::seconds kFindActorTime{30};

/// Whether an actor that is killed may be started again.
enum class Restarts { kNone, kAllowed };

/// A program's connection to its cluster; one per process. Make it first in main, register the
/// actors, then run(). All methods may be called from any thread once the runtime is started,
/// except where documented otherwise. Blocking methods wait for other processes; in an actor, they
/// block only that actor. An actor gets the Runtime if the first parameter of its constructor is a
/// `Runtime&`. Size: each public template has a private function without types.
class Runtime {
 public:
  /// Reads `--address` from the arguments; does not connect yet.
  Runtime(int argc, char** argv, RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  /// Calls stop().
  ~Runtime();

  /// Registers a class under `name`, with the methods that may be called. Call it in main, before
  /// start() or run(), in driver and worker alike. A method is `&T::m`, or method("name", &T::m).
  /// Registering a name or a class twice is a bug.
  template <class T, class... Methods>
  void register_actor(std::string name, Methods... methods);

  /// Registers a plain function for task(). Call it in main, before start() or run(), in driver and
  /// worker alike. The name identifies the function on the wire. Registering a function twice is a
  /// bug.
  template <class R, class... P>
  void register_function(std::string name, R (*function)(P...));

  /// In a worker process: serves actors until the node ends it. In the driver: start(),
  /// driver_main(*this), stop(). Returns the exit code. driver_main returns int or Status; a
  /// failure is printed as "error: ..." and gives exit code 1.
  template <class Main>
  int run(Main driver_main);

  /// Whether this process was started by a node to run actors.
  bool is_worker() const;
  /// The program's arguments without those that the runtime consumed.
  const std::vector<std::string>& arguments() const;

  /// Connects the driver to its cluster. Idempotent. Errors: kUnavailable, kNotFound,
  /// kInvalidArgument (wrong token), each with the cure.
  Status start();
  /// Ends the driver's actors and its connections, and the cluster if start() made one. Idempotent.
  /// In a fork()ed child neither it nor the destructor does anything: a Runtime belongs to the
  /// process that started it. (The child may start its own.)
  void stop();

  /// Creates an actor and waits for its constructor. The arguments travel as copies; the
  /// constructor may take a Runtime& before them. Instead of a constructor a class may have `static
  /// Result<std::unique_ptr<T>> create(...)`. Errors: kResourceExhausted (what is missing where),
  /// kInvalidArgument (name taken, class not registered), kTaskFailed (the constructor threw), what
  /// create() returned, kDeadlineExceeded after options.create_timeout.
  template <class T, class... Args>
  Result<ActorHandle<T>> spawn(const ActorOptions& options, const Args&... args);

  /// Creates `size` actors at once; all or none. An argument may be split(), one part per rank.
  /// "-<rank>" is appended to a name in the options.
  template <class T, class... Args>
  Result<ActorGroup<T>> spawn_group(std::size_t size, const ActorOptions& options,
                                    const Args&... args);
  /// The same with options for each member.
  template <class T, class... Args>
  Result<ActorGroup<T>> spawn_group(const std::vector<ActorOptions>& options, const Args&... args);

  /// The actor of that name in the job's namespace. Waits while it is being created or restarted.
  /// Errors: kNotFound, kActorDied, kInvalidArgument (the actor is of another class).
  template <class T>
  Result<ActorHandle<T>> get_actor(const std::string& name, Until until = kFindActorTime);
  /// The same in the given namespace, which another job may use too.
  template <class T>
  Result<ActorHandle<T>> get_actor(const std::string& name, const std::string& name_space,
                                   Until until = kFindActorTime);

  /// Ends the actor at once and for good; returns when it is gone. Outstanding calls fail with
  /// kActorDied. A call that a shared actor is running cannot be interrupted: it ends by itself,
  /// and its caller gets the result.
  template <class T>
  Status kill(const ActorHandle<T>& actor, Until until = std::chrono::seconds(10));
  /// With Restarts::kAllowed the actor comes back as after a crash, if its max_restarts allow that.
  template <class T>
  Status kill(const ActorHandle<T>& actor, Restarts restarts,
              Until until = std::chrono::seconds(10));
  /// Lets the actor run its queued calls, then destroys it and ends it. Calls that this process
  /// made before, through any handle, count as queued; later ones fail with kActorDied at once. An
  /// actor that has not ended at the deadline is killed. Returns when the actor is gone.
  template <class T>
  Status terminate(const ActorHandle<T>& actor, Until until = std::chrono::seconds(30));
  /// Ends the actor as terminate() does and starts it again, in a new process and with the state
  /// that it saves when it ends. Calls that arrive meanwhile wait, and run in the new process.
  /// Returns when the old process is gone. Errors: kInvalidArgument (no restart left:
  /// ActorOptions::max_restarts).
  template <class T>
  Status restart(const ActorHandle<T>& actor, Until until = std::chrono::seconds(30));
  /// Makes an actor whose class has save_state() and restore_state() (runtime/call/state_hooks.h)
  /// save its state, after the calls that were made before. Every restart runs the constructor,
  /// then restores the last saved state. Errors: kResourceExhausted (over kActorStateBytesMax, 1
  /// MiB; the state saved before stays), kInvalidArgument (the state holds ObjectRefs), an error
  /// that save_state() returned, those of a call.
  template <class T>
  requires SavesState<T> Status save_state(const ActorHandle<T>& actor,
                                           Until until = std::chrono::seconds(30));
  /// The same from within one of its methods: `runtime_.save_state(*this)`. When it returns, the
  /// saved state survives a crash.
  template <SavesState T>
  Status save_state(const T& self, Until until = std::chrono::seconds(30));
  /// As spawn(); the actor is terminated at the end of the returned object's scope.
  template <class T, class... Args>
  Result<ScopedActor<T>> spawn_scoped(const ActorOptions& options, const Args&... args);

  /// Calls back when the actor's process ends (with the cause), when it runs again, and when it is
  /// dead for good. If it is dead already, it calls back at once. Callbacks run one after another
  /// on a dedicated thread and may use the runtime. They stop when the returned object is destroyed
  /// or the runtime stops. An exception from a callback is logged.
  template <class T>
  Watch watch(const ActorHandle<T>& actor, std::function<void(const ActorEvent&)> callback);
  /// The same as an object, to get, await or pass on: it settles with the cause when the actor has
  /// ended for good. Does not block.
  template <class T>
  ObjectRef<ActorDeath> when_dead(const ActorHandle<T>& actor) {
    return death_of_actor(actor.id());
  }
  template <class T>
  Status kill(const ActorGroup<T>& group, Until until = std::chrono::seconds(10));

  /// Requests the cancellation of a call and returns at once. The result settles later. It is
  /// kCancelled if the call never ran or obeyed the request (a method that takes a CallContext
  /// can), else the return value. CancelMode::kForce ends a running call with its actor's process,
  /// whose other calls fail with kActorDied. A settled result stays. Errors: kInvalidArgument
  /// (`ref` is not the result of a call of this process).
  template <class T>
  Status cancel(const ObjectRef<T>& ref, CancelMode mode = CancelMode::kCooperative);

  /// Runs a registered function in a worker process of the cluster as soon as one has the
  /// resources, and returns at once: `rt.task(&score, batch)`. For stateless work: tasks run in any
  /// order, independently, and again on another worker when their worker dies
  /// (TaskOptions::max_retries). Arguments, result and failures are as for ActorHandle::call.
  template <class R, class... P, class... Args>
  auto task(R (*function)(P...), const Args&... args);
  template <class R, class... P, class... Args>
  auto task(const TaskOptions& options, R (*function)(P...), const Args&... args);

  /// Makes an object from a copy of the value. A value below 64 KiB stays in this process; a larger
  /// one is copied once, into the node's shared memory. If the store is full, put() waits until
  /// objects have been dropped or moved to disk. Errors: kResourceExhausted if there is no room by
  /// `until`, or can never be enough.
  template <class T>
  Result<ObjectRef<T>> put(const T& value, Until until = std::chrono::seconds(30));

  /// Waits for the object and copies it out. Errors: those of the call that makes it;
  /// kDeadlineExceeded; kObjectLost.
  template <class T>
  Result<T> get(const ObjectRef<T>& ref, Until until = {});
  /// For methods without a result.
  Status get(const ObjectRef<void>& ref, Until until = {});

  /// The same for coroutine methods, which let other calls run meanwhile; defined in
  /// runtime/coroutine.h. Errors: also kCancelled, if the awaiting call was cancelled. Fetching
  /// from another node or from disk does not block the actor.
  template <class T>
  boost::asio::awaitable<Result<T>, boost::asio::any_io_executor> async_get(ObjectRef<T> ref,
                                                                            Until until = {});
  boost::asio::awaitable<Status, boost::asio::any_io_executor> async_get(ObjectRef<void> ref,
                                                                         Until until = {});

  /// Waits until `count` of the objects are settled (values or failures), or until the deadline.
  /// Cost: linear in the number of refs; to take many results one by one, ObjectApi::as_completed()
  /// has a constant cost for each.
  template <class T>
  WaitResult<T> wait(const std::vector<ObjectRef<T>>& refs, std::size_t count, Until until = {});

  /// Operations on several objects, values read in place, and the objects of the cluster.
  ObjectApi objects() const;
  /// Values with a name and a version, owned by the cluster.
  PublishedApi published() const;
  /// Reservations of resources, in which actors are placed.
  PlacementGroupApi groups() const;
  /// Small values under keys, shared by the job's processes.
  KeyValueApi kv() const;
  /// Nodes, actors and jobs; notices of nodes that join or leave.
  ClusterApi cluster() const;

 private:
  struct Impl;

  ActorClass& add_class(std::string name, std::type_index type);
  int run_worker();
  void stop(int exit_code);  // of driver_main
  Status require_started() const;
  Result<PendingActor> start_actor(std::type_index type, std::string_view signature,
                                   const ActorOptions& options, Encoder& arguments);
  Result<std::shared_ptr<ActorClient>> finish_actor(const PendingActor& pending);
  void explain_wait(ActorId actor);
  Result<std::vector<std::shared_ptr<ActorClient>>> finish_group(
      const std::vector<Result<PendingActor>>& pending);
  Result<std::shared_ptr<ActorClient>> find_actor(std::type_index type, const std::string& name,
                                                  const std::string& name_space, Deadline deadline);
  Status kill_actor(ActorId actor, Restarts restarts, Deadline deadline);
  Status terminate_actor(ActorId actor, Deadline deadline);
  Status kill_actors(std::vector<ActorId> actors, Deadline deadline);
  Status restart_actor(ActorId actor, Deadline deadline);
  Status save_actor_state(ActorClient* client, std::type_index type, Deadline deadline);
  Status save_own_state(const void* actor, const StateHooks& hooks, Deadline deadline);
  Watch watch_actor(ActorId actor, std::function<void(const ActorEvent&)> callback);
  ObjectRef<ActorDeath> death_of_actor(ActorId actor);
  ActorClass& functions();
  ObjectStatePtr submit_task(const MethodKey& function, const TaskOptions& options,
                             Encoder& arguments);
  Result<ObjectStatePtr> put_encoded(Encoder& encoder, Deadline deadline);
  std::size_t wait_for(const std::vector<ObjectStatePtr>& objects, std::size_t count,
                       Deadline deadline);
  Status cancel_call(const ObjectStatePtr& result, CancelMode mode);

  template <class T, class... Args>
  Result<PendingActor> begin_spawn(const ActorOptions& options, const Args&... args);

  std::unique_ptr<Impl> impl_;
};

}  // namespace runtime

#include "runtime/runtime_templates.h"
