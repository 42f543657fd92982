// BlockedCalls: the calls that run in this process and wait for other calls, and the search for
// cycles among these.
//
// A wait that lasts tells the process of the awaited call of itself, along the connection that the
// call went over. Is that call held up by one that waits itself (it is that one, or it stands in
// line behind it before an actor that runs one call at a time), then the word goes on to what that
// one waits for. What comes back to its origin is a cycle: none of its calls can end. A call that
// computes, a coroutine, and an actor that runs several calls at once end every search.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/actor/fwd.h"
#include "runtime/actor/wait_step.h"
#include "runtime/core/clock.h"
#include "runtime/core/ids.h"

namespace runtime {

class EventLoop;

/// A call that runs on a thread; lives on its stack.
class RunningCall {
 public:
  using Key = std::tuple<ActorId, const Channel*, std::uint64_t /* its sequence */>;

  RunningCall(Key key, const std::string& class_name, const std::string& method);
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;
  ~RunningCall();

  /// The calling thread's; null: it runs none.
  static const RunningCall* current();
  const Key& key() const { return key_; }
  /// "Counter 7f3a0011: add".
  std::string describe() const;

 private:
  const Key key_;
  const std::string& class_name_;
  const std::string& method_;
  const RunningCall* const outer_;
};

/// Any thread may call any method.
class BlockedCalls {
 public:
  using Producers = std::vector<std::weak_ptr<Producer>>;

  explicit BlockedCalls(std::uint64_t session) : session_(session) {}
  BlockedCalls(const BlockedCalls&) = delete;
  BlockedCalls& operator=(const BlockedCalls&) = delete;

  /// How long a call waits before others hear of it, and between two times that they do.
  static constexpr std::chrono::seconds kPeriod{1};

  /// As the executor's block_until(), for what all of `objects` settle. Where the calling thread
  /// runs no call, or in a simulation, it is just that. A call that can only end by the end of the
  /// one that waits fails meanwhile with kInvalidArgument, which names the cycle, unless some wait
  /// of it has a limit.
  bool wait(EventLoop& loop, Event& event, const ObjectState* const* objects, std::size_t count,
            Deadline deadline);
  /// The same for what a call brings before its end.
  bool wait(EventLoop& loop, Event& event, Producers producers, Deadline deadline);
  /// ": " and the cycle that the calling thread's last wait was part of; empty: none is known.
  static std::string take_cycle();

  /// The call `held_by` runs here, and what the last of `steps` waits for ends only after it. On
  /// the loop.
  void on_waits(const RunningCall::Key& held_by, const std::vector<WaitStep>& steps);

 private:
  struct Entry;
  class Registered;

  void tell(const Entry& entry, const std::vector<WaitStep>& steps) const;
  void on_cycle(Entry& entry, const std::vector<WaitStep>& steps) const;

  const std::uint64_t session_;
  std::mutex mutex_;  // guards what follows
  std::uint64_t numbers_ = 0;
  std::map<RunningCall::Key, std::shared_ptr<Entry>> entries_;
};

/// "A 12: f waits for B 34: g; B 34: h waits for A 12: k": the steps as one sentence.
std::string describe_cycle(const std::vector<WaitStep>& steps);

}  // namespace runtime
