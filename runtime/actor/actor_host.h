// ActorHost: one actor in its worker process: the line of calls before it, and their running, one at a time and in order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/actor/actor_job.h"
#include "runtime/actor/constructor_table.h"
#include "runtime/actor/fwd.h"
#include "runtime/actor/held_results.h"
#include "runtime/actor/invoke.h"
#include "runtime/actor/registry.h"
#include "runtime/core/result.h"

namespace runtime {

class ActorExecutor;

struct ActorHostOptions {
  std::size_t calls_max = 1 << 20;  // in line; more are refused with kResourceExhausted
};

/// What all actors of a process share. The executor outlives every stop() and push().
struct HostContext {
  std::shared_ptr<Process> process;
  Runtime& runtime;
  ActorExecutor& executor;
  ActorHostOptions options{};
  mutable HeldResults held{};
};

/// A process may have very many. The executor's threads run it, never two at once; any thread may call the other methods.
class ActorHost : public std::enable_shared_from_this<ActorHost> {
 public:
  ActorHost(std::shared_ptr<const HostContext> context, ActorId id, std::uint64_t incarnation)
      : context_(std::move(context)), id_(id), incarnation_(incarnation) {}
  ActorHost(const ActorHost&) = delete;
  ActorHost& operator=(const ActorHost&) = delete;

  ActorId id() const { return id_; }
  std::uint64_t incarnation() const { return incarnation_; }

  /// Puts the constructor in line; `answer` is called on the thread that ran it. Once, before any call.
  void build(ActorSpec spec, std::function<void(Status)> answer);
  /// Puts a call in line, or answers that it cannot be.
  void push(std::unique_ptr<ActorJob> job);
  /// The caller does not want this call any more: if it is still in line, it will not run.
  void cancel(const Channel* channel, std::uint64_t sequence);
  /// Ends the actor after the job that is running: it is destroyed, what is in line is answered that it is gone, then `done` runs (at once
  /// when the actor was stopped before).
  void stop(std::function<void()> done);
  /// The same at once on the calling thread, when the executor has come to rest.
  void stop_at_rest();

  /// For the executor: runs jobs of the line, at most so many. Whether there are more.
  bool run(std::size_t jobs_max);

 private:
  std::unique_ptr<ActorJob> pop(bool* last);
  void finish();
  Status construct(ActorJob& job);
  Status execute(ActorJob& job, InvokeOutput& output);
  void reply(std::unique_ptr<ActorJob> job, Status status, InvokeOutput& output, Flush flush);
  void send_reply(std::unique_ptr<ActorJob> job, Status status, ObjectValue value, Flush flush);

  const std::shared_ptr<const HostContext> context_;
  const ActorId id_;
  const std::uint64_t incarnation_;

  // Touched by the running thread alone.
  const ActorClass* class_ = nullptr;
  std::shared_ptr<void> actor_;

  std::mutex mutex_;  // guards what follows
  JobLine line_;
  std::function<void()> stopped_;
  bool scheduled_ = false;  // the executor has it, or runs it
  bool stopping_ = false;
};

/// Answers a call with a failure. `gone`: there is no such actor here (any more); the caller asks the head what became of it.
void refuse_call(const ActorJob& job, Status why, bool gone, Flush flush);

}  // namespace runtime
