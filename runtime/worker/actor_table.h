// ActorTable: the actors of a worker process, by id. Gives each frame of a caller to the actor it
// is for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "runtime/control/membership.h"
#include "runtime/core/result.h"
#include "runtime/transport/channel.h"
#include "runtime/worker/actor_host.h"

namespace runtime {

/// Lives on the event loop, except where a method says otherwise.
class ActorTable : public std::enable_shared_from_this<ActorTable> {
 public:
  explicit ActorTable(std::shared_ptr<const HostContext> context);
  ~ActorTable();
  ActorTable(const ActorTable&) = delete;
  ActorTable& operator=(const ActorTable&) = delete;

  /// Adds an actor; `answer` is called once, from any thread, when its constructor has returned.
  /// One that fails is taken out again. An actor that begins again here does so after its earlier
  /// self's destructor. It begins before that if a call that does not end holds the destructor up
  /// for a second.
  void build(ActorSpec spec, std::uint64_t incarnation, std::function<void(Status)> answer);
  /// Takes the actor out and ends it after the call it runs; `done` is called once, from any
  /// thread. An actor that is not there has ended.
  void stop(ActorId actor, std::uint64_t incarnation, std::function<void()> done);

  /// Lets the actor run the calls in line and ends it then; `done` as for stop().
  void stop_after_calls(ActorId actor, std::uint64_t incarnation, std::function<void()> done);

  /// The node is about to leave: all actors hear of it, those too that are built later.
  void tell_of_drain();

  /// A caller has connected.
  void on_channel(const std::shared_ptr<Channel>& channel);
  /// Whether the process is one for many.
  bool is_shared() const { return shared_; }

  /// A frame of a caller: a call, or a notice.
  void on_message(const std::shared_ptr<Channel>& channel, Message message);
  /// A caller's connection has ended: its calls still in line will not run, running ones are told,
  /// and what it held is released.
  void on_channel_closed(const Channel* channel);
  /// Tells all running calls that the process is being ended. Any thread.
  void cancel_running() { context_->active.cancel_all(); }

  /// Destroys the actors; on the main thread, when the executor has come to rest.
  void clear();

 private:
  /// An actor's earlier self on its way out, and its next start, which waits for that.
  struct Ending;

  void begin(ActorSpec spec, std::uint64_t incarnation, std::function<void(Status)> answer);
  void end(const std::shared_ptr<ActorHost>& host, std::function<void()> done);
  void give_up_start(ActorId actor, std::uint64_t incarnation);
  /// It has not ended in time for its next self.
  void give_up(ActorId actor, std::uint64_t incarnation);
  void on_ended(ActorId actor, std::uint64_t incarnation);
  void tell_drained(ActorId actor);
  void accept_call(const std::shared_ptr<Channel>& channel, Message message);

  const std::shared_ptr<const HostContext> context_;
  std::unordered_map<ActorId, std::shared_ptr<ActorHost>> hosts_;
  std::unordered_map<ActorId, std::unique_ptr<Ending>> endings_;
  std::map<std::uint64_t, std::weak_ptr<Channel>> channels_;  // by serial
  ActorId drained_;  // the one actor of this process, after it has served its last call
  bool shared_ = false;
  bool drains_ = false;  // the node
};

}  // namespace runtime
