// BlockedCalls: the calls that run in this process and wait for other calls, and the search for
// cycles among these.
//
// A wait that lasts is announced to the process of the awaited call, along the connection that the
// call went over. No connection leads to an actor that is being made, so that what waits for its
// constructor is announced by way of the head. The awaited call may be held up by one that waits
// itself. That is the awaited call itself, or a call ahead of it in line for an actor that runs one
// call at a time. Then the search goes on to what that one waits for. A search that comes back to
// its origin has found a cycle: none of its calls can end. Constructors and coroutines count as
// calls. A call that computes, an actor that runs several calls at once, and a coroutine that
// awaits several things at once end every search.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/call/wait_step.h"
#include "runtime/core/clock.h"
#include "runtime/core/ids.h"

namespace runtime {

class EventLoop;

/// A call that an actor of this process serves. The names outlive it: they are the registry's.
struct ServedCall {
  /// Of a constructor: no channel, and 0.
  using Key = std::tuple<ActorId, const Channel*, std::uint64_t /* its sequence */>;

  Key key;
  const std::string* class_name;
  const std::string* method;

  /// "Counter 7f3a0011: add".
  std::string describe() const;
};

/// A call that runs on a thread; lives on its stack.
class RunningCall {
 public:
  explicit RunningCall(const ServedCall& call);
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;
  ~RunningCall();

  /// The calling thread's; null: it runs none.
  static const ServedCall* current();

 private:
  const ServedCall call_;
  const ServedCall* const outer_;
};

/// The name of a constructor among an actor's calls.
extern const std::string kConstructor;

struct BlockedWait;
class WaitTable;

/// A wait that has lasted BlockedCalls::kPeriod, which the search for cycles knows while this
/// lives. A call has several at a time where a coroutine waits, and something else that it started
/// blocks the actor. The call ends after all of them.
class RegisteredWait {
 public:
  RegisteredWait(std::shared_ptr<WaitTable> waits, const ServedCall::Key& key,
                 std::shared_ptr<BlockedWait> wait);
  RegisteredWait(RegisteredWait&&) noexcept = default;
  RegisteredWait& operator=(RegisteredWait&&) = delete;
  ~RegisteredWait();

  /// Tells the processes of the awaited calls; to be repeated every kPeriod.
  void announce() const;
  /// The cycle that the call is part of; empty: none is known.
  std::string cycle() const;

 private:
  std::shared_ptr<WaitTable> waits_;  // that the search goes through; null once moved from
  const ServedCall::Key key_;
  std::shared_ptr<BlockedWait> wait_;
};

/// Any thread may call any method.
class BlockedCalls {
 public:
  using Producers = std::vector<std::weak_ptr<Producer>>;

  explicit BlockedCalls(std::uint64_t session);
  BlockedCalls(const BlockedCalls&) = delete;
  BlockedCalls& operator=(const BlockedCalls&) = delete;

  /// How long a call waits before others hear of it, and between two times that they do.
  static constexpr std::chrono::seconds kPeriod{1};

  /// As the executor's block_until(), for what all of `objects` settle. Where the calling thread
  /// runs no call, or in a simulation, it is just that. A call that can only end by the end of the
  /// one that waits fails meanwhile, unless some wait of it has a limit. It fails with
  /// kInvalidArgument, which names the cycle.
  bool wait(EventLoop& loop, Event& event, const ObjectState* const* objects, std::size_t count,
            Deadline deadline);
  /// The same for what a call brings before its end.
  bool wait(EventLoop& loop, Event& event, Producers producers, Deadline deadline);
  /// ": " and the cycle that the calling thread's last wait was part of; empty: none is known.
  static std::string take_cycle();

  /// The call waits for what these make, and has done so for kPeriod. `bounded`: the wait has its
  /// own time limit.
  RegisteredWait enter(const ServedCall& call, Producers producers, bool bounded) const;

  /// The call `held_by` runs here, and what the last of `steps` waits for ends only after it. On
  /// the loop.
  void on_waits(const ServedCall::Key& held_by, const std::vector<WaitStep>& steps) const;

 private:
  const std::shared_ptr<WaitTable> waits_;
};

/// "A 12: f waits for B 34: g; B 34: h waits for A 12: k": the steps as one sentence.
std::string describe_cycle(const std::vector<WaitStep>& steps);

}  // namespace runtime
