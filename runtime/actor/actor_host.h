// ActorHost: one actor in its worker process: the line of calls before it, and the thread that runs them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/actor/call_wire.h"
#include "runtime/actor/constructor_table.h"
#include "runtime/actor/fwd.h"
#include "runtime/actor/invoke.h"
#include "runtime/actor/registry.h"
#include "runtime/core/result.h"
#include "runtime/node/membership.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

struct ActorHostOptions {
  std::size_t calls_max = 1 << 20;  // in line; more are refused with kResourceExhausted
};

/// The handlers run on the event loop; run() is the actor's own thread and the only one that touches the actor.
class ActorHost {
 public:
  ActorHost(std::shared_ptr<Process> process, Runtime& runtime, ActorHostOptions options = {});
  ActorHost(const ActorHost&) = delete;
  ActorHost& operator=(const ActorHost&) = delete;
  ~ActorHost();

  /// Runs constructor and calls until stop(), then destroys the actor. Drives the event loop while it has nothing else to do, so that a
  /// call that arrives is run by the thread that received it.
  void run();
  /// Ends run() after the call that is running. Any thread.
  void stop();

  /// Puts the constructor in line; `answer` is called on the actor's thread. Once.
  void build(ActorSpec spec, std::uint64_t incarnation, std::function<void(Status)> answer);
  /// A frame of a caller: a call, or a notice. On the loop.
  void on_message(const std::shared_ptr<Channel>& channel, Message message);
  /// A caller's connection has ended: its calls still in line are dropped, and what it held is released. On the loop.
  void on_channel_closed(const Channel* channel);

 private:
  struct Job;
  using HeldKey = std::pair<const Channel*, std::uint64_t>;

  void accept_call(const std::shared_ptr<Channel>& channel, Message message);
  void push(std::unique_ptr<Job> job);
  std::unique_ptr<Job> pop(bool* last);
  Status construct(Job& job);
  Status execute(Job& job, InvokeOutput& output);
  void reply(std::unique_ptr<Job> job, Status status, InvokeOutput& output, Flush flush);
  void send_reply(std::unique_ptr<Job> job, Status status, ObjectValue value, Flush flush);

  const std::shared_ptr<Process> process_;
  Runtime& runtime_;
  const ActorHostOptions options_;
  Event work_;

  // Touched on the actor's thread alone, and constant once the constructor has run.
  const ActorClass* class_ = nullptr;
  std::shared_ptr<void> actor_;

  std::mutex mutex_;  // guards what follows
  ActorId id_;
  std::uint64_t incarnation_ = 0;
  std::deque<std::unique_ptr<Job>> line_;
  std::map<HeldKey, ObjectValue> held_;  // results that their callers may still refer to
  bool stopping_ = false;
};

}  // namespace runtime
