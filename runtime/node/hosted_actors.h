// HostedActors: the shared actors of one worker process, as its node knows them: those being built
// and those that serve.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/core/timer.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// Lives on the event loop. A serving actor takes about a hundred bytes.
class HostedActors {
 public:
  struct Callbacks {
    /// Hears of every actor that ends after its start was answered with success; of all that end
    /// with the process in one go.
    std::function<void(control::ActorsExited)> exited;
    std::function<void()>
        emptied;  // the last one is gone; not called from within start() or on_exit()
  };

  /// `process`: what the addresses of all its actors say of the process.
  HostedActors(EventLoop& loop, JobId job, ActorAddress process, Callbacks callbacks);
  HostedActors(const HostedActors&) = delete;
  HostedActors& operator=(const HostedActors&) = delete;
  ~HostedActors();

  /// Lets the process build the actor, once it has connected; of an incarnation that it has, or
  /// builds already, only the answer is another. Errors as WorkerPool::start_actor.
  void start(ActorSpec spec, std::uint64_t incarnation, Deadline deadline, ControlAnswerer answer);
  void on_connected(const std::shared_ptr<Channel>& channel);
  /// Ends the actor if it is one of these. No call reaches it any more, or none does once those in
  /// line have been served, within the grace. A call that it runs is told, and ends by itself. Of
  /// several graces the one that ends first counts.
  bool stop(const control::StopActor& stop);
  /// The process has ended, and all actors with it.
  void on_exit(const DeathCause& cause);

  std::size_t size() const { return actors_.size(); }
  bool has(ActorId actor) const { return actors_.contains(actor); }
  /// Appends the actors that serve.
  void list(std::vector<control::ActorInstance>& to) const;

  /// What waits for the process to connect, which has ended first.
  struct Unsent {
    ActorSpec spec;
    std::uint64_t incarnation = 0;
    ControlAnswerer answer;
  };
  std::vector<Unsent> take_unsent();

 private:
  struct Start;
  struct Ending;
  struct Actor {
    Actor();
    Actor(Actor&&) noexcept;
    Actor& operator=(Actor&&) noexcept;
    ~Actor();
    std::uint64_t incarnation = 0;
    std::unique_ptr<Start> start;    // until it is answered
    std::unique_ptr<Ending> ending;  // once it is to serve what waits, and to end
  };
  using Actors = std::unordered_map<ActorId, Actor>;

  ActorAddress address_of(ActorId id, std::uint64_t incarnation,
                          const std::string& class_name) const;
  void build(ActorId id, Actor& actor);
  void on_built(ActorId id, std::uint64_t incarnation, const Result<ControlAnswer>& built);
  void drain(ActorId id, Actor& actor, std::chrono::milliseconds grace, const std::string& reason);
  void on_drained(ActorId id, std::uint64_t incarnation, std::string reason, bool in_time);
  Actors::iterator find(ActorId id, std::uint64_t incarnation);
  /// Takes the actor out, and says why it is gone.
  void end(Actors::iterator actor, std::string reason);
  void tell_stop(ActorId id, std::uint64_t incarnation);
  void fail_late();
  void arm_timer();

  EventLoop& loop_;
  const JobId job_;
  const ActorAddress process_;
  const Callbacks callbacks_;
  std::shared_ptr<Channel> channel_;  // once connected
  Actors actors_;
  Timer timer_;  // of starts that wait for the process to connect
  Lifetime lifetime_;
};

}  // namespace runtime
