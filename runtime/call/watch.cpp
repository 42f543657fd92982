#include "runtime/call/watch.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "runtime/call/callback_thread.h"
#include "runtime/call/query_context.h"
#include "runtime/control/actor_directory.h"
#include "runtime/control/cluster_client.h"
#include "runtime/control/published_client.h"
#include "runtime/core/fork_guard.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

namespace {
/// How long one question to the head stays open; then it is asked again, so that a head forgets
/// those who went away.
constexpr std::chrono::minutes kWatchPollTime{10};
constexpr std::chrono::seconds kPause{1};  // after a failure

bool can_call_back(const QueryContext& queries) {
  const Status status = queries.callbacks.start();
  if (!status.ok()) LOG(error, "a watch cannot call back: {}", status.message());
  return status.ok();
}
}  // namespace

/// Asks the head again and again for what is newer than what is known. Kept alive by its Watch
/// alone.
class Watch::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(const QueryContextPtr& queries)
      : generation_(fork_generation()), queries_(queries) {}
  virtual ~State() = default;

  virtual void ask(const QueryContext& queries) = 0;

  void poll() {
    if (auto queries = queries_.lock(); queries && !queries->objects.shut_down) ask(*queries);
  }

  void poll_later(EventLoop& loop) {
    auto pause = std::make_shared<Timer>(loop.context(), kPause);
    pause->async_wait([pause, weak = weak_from_this()](const boost::system::error_code&) {
      if (auto self = weak.lock()) self->poll();
    });
  }

  void stop() {
    if (generation_ != fork_generation()) return;  // the thread that calls back is the parent's
    std::unique_lock lock(mutex_);
    stopped_ = true;
    if (caller_ == std::this_thread::get_id()) return;
    idle_.wait(lock, [&] { return caller_ == std::thread::id(); });
  }

 protected:
  /// Runs `call` on the process's callback thread, unless stopped by then.
  void deliver(std::function<void()> call) {
    auto queries = queries_.lock();
    if (!queries) return;
    queries->callbacks.run([self = shared_from_this(), call = std::move(call)] {
      {
        std::lock_guard lock(self->mutex_);
        if (self->stopped_) return;
        self->caller_ = std::this_thread::get_id();
      }
      const Called called{*self};  // also when it throws
      call();
    });
  }

  /// Whether to ask again after this failure: time passed without news.
  static bool is_no_news(const Status& status) {
    return status.code() == ErrorCode::kDeadlineExceeded;
  }

 private:
  struct Called {
    State& state;
    ~Called() {
      std::lock_guard lock(state.mutex_);
      state.caller_ = {};
      state.idle_.notify_all();
    }
  };

  const std::uint64_t generation_;
  const std::weak_ptr<const QueryContext> queries_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::thread::id caller_;  // in a callback now
  bool stopped_ = false;
};

class Watch::OfActor final : public State {
 public:
  OfActor(const QueryContextPtr& queries, ActorId actor,
          std::function<void(const ActorEvent&)> callback)
      : State(queries), actor_(actor), callback_(std::move(callback)) {}

  void ask(const QueryContext& queries) override {
    ActorDirectory(queries.node)
        .watch(actor_, known_ ? known_->version : 0, deadline_after(kWatchPollTime),
               [weak = std::weak_ptr<State>(shared_from_this())](Result<ActorState> state) {
                 if (auto self = weak.lock())
                   static_cast<OfActor&>(*self).on_answer(std::move(state));
               });
  }

 private:
  void on_answer(Result<ActorState> answer) {
    if (!answer.ok() && is_no_news(answer.status())) return poll();
    if (!answer.ok()) {
      // The head remembers a bounded number of the dead.
      if (answer.status().code() != ErrorCode::kNotFound)
        return LOG(debug, "watching actor {}: {}", actor_.short_hex(), answer.status().message());
      ActorState gone = known_.value_or(ActorState{});
      gone.actor = actor_;
      gone.phase = ActorPhase::kDead;
      gone.death.text = answer.status().message();
      return tell(ActorEvent::Kind::kDead, gone);
    }
    const ActorState before = known_.value_or(*answer);
    known_ = *answer;
    // Two changes may have become one answer; no death is left out.
    if (answer->restarts > before.restarts) tell(ActorEvent::Kind::kRestarting, *answer);
    const bool again = answer->restarts > before.restarts || before.is_restarting();
    if (answer->phase == ActorPhase::kAlive && again) tell(ActorEvent::Kind::kAlive, *answer);
    if (answer->phase == ActorPhase::kDead) return tell(ActorEvent::Kind::kDead, *answer);
    poll();
  }

  void tell(ActorEvent::Kind kind, const ActorState& state) {
    deliver([this, event = ActorEvent{kind, state}] { callback_(event); });
  }

  const ActorId actor_;
  const std::function<void(const ActorEvent&)> callback_;
  std::optional<ActorState> known_;  // touched on the loop
};

class Watch::OfNodes final : public State {
 public:
  OfNodes(const QueryContextPtr& queries, std::function<void(const NodeEvent&)> callback)
      : State(queries), loop_(queries->objects.loop), callback_(std::move(callback)) {}

  void ask(const QueryContext& queries) override {
    ClusterClient(queries.node)
        .watch_nodes(
            version_, deadline_after(kWatchPollTime),
            [weak = std::weak_ptr<State>(shared_from_this())](Result<control::NodeList> list) {
              if (auto self = weak.lock()) static_cast<OfNodes&>(*self).on_answer(std::move(list));
            });
  }

 private:
  /// What has happened, by the version of the cluster's nodes that it made.
  using Events = std::multimap<std::uint64_t, NodeEvent>;

  void on_answer(Result<control::NodeList> answer) {
    if (!answer.ok() && is_no_news(answer.status())) return poll();
    if (!answer.ok()) {
      LOG(debug, "watching nodes: {}", answer.status().message());
      return poll_later(loop_);
    }
    // A cluster that was started again counts from the beginning.
    if (answer->version < version_) version_ = 0;
    Events events;
    for (NodeDeparture& departure : answer->departed) add_departure(events, departure);
    std::map<NodeId, NodeInfo> now;
    for (NodeInfo& node : answer->nodes) now.emplace(node.node, std::move(node));
    for (const auto& [id, node] : known_) {
      if (!now.contains(id) && !told_gone_.contains(id))
        events.emplace(answer->version, gone(node, "it is not in the cluster any more", false));
    }
    for (const auto& [id, node] : now) add_changes(events, node);
    for (auto& [version, event] : events) tell(std::move(event));
    told_gone_.clear();
    known_ = std::move(now);
    version_ = answer->version;
    poll();
  }

  static NodeEvent gone(NodeInfo node, std::string why, bool drained) {
    node.alive = false;
    return {drained ? NodeEvent::Kind::kLeft : NodeEvent::Kind::kLost,
            std::move(node),
            std::move(why),
            {}};
  }

  void add_departure(Events& events, NodeDeparture& departure) {
    // Of one that has come and gone between two looks too.
    add_changes(events, departure.node);
    told_gone_.insert(departure.node.node);
    events.emplace(departure.version,
                   gone(std::move(departure.node), std::move(departure.why), departure.drained));
  }

  void add_changes(Events& events, const NodeInfo& node) {
    const auto known = known_.find(node.node);
    if (known == known_.end())
      events.emplace(node.joined_as, NodeEvent{NodeEvent::Kind::kJoined, node, {}, {}});
    const bool is_news = node.drain && (known == known_.end() || !known->second.drain ||
                                        known->second.drain->version != node.drain->version);
    if (is_news)
      events.emplace(node.drain->version,
                     NodeEvent{NodeEvent::Kind::kDraining, node, node.drain->reason,
                               deadline_after(node.drain->left)});
  }

  void tell(NodeEvent event) {
    deliver([this, event = std::move(event)] { callback_(event); });
  }

  EventLoop& loop_;  // of the process, on which answers come
  const std::function<void(const NodeEvent&)> callback_;
  // Touched on the loop.
  std::uint64_t version_ = 0;
  std::map<NodeId, NodeInfo> known_;  // what was told
  std::set<NodeId> told_gone_;        // by the answer that is being looked at
};

class Watch::OfPublished final : public State {
 public:
  OfPublished(const QueryContextPtr& queries, std::string name, std::string name_space,
              std::function<void(const PublishedEvent&)> callback)
      : State(queries),
        loop_(queries->objects.loop),
        name_(std::move(name)),
        name_space_(std::move(name_space)),
        callback_(std::move(callback)) {}

  void ask(const QueryContext& queries) override {
    control::FindPublished next{name_space_, name_, version_ + 1, false, true};
    PublishedClient(queries.node)
        .find(std::move(next), deadline_after(kWatchPollTime),
              [weak = std::weak_ptr<State>(shared_from_this())](Result<PublishedObject> found) {
                if (auto self = weak.lock())
                  static_cast<OfPublished&>(*self).on_answer(std::move(found));
              });
  }

 private:
  void on_answer(Result<PublishedObject> answer) {
    if (answer.ok()) {
      version_ = answer->version;
      deliver([this, event = PublishedEvent{name_, answer->version}] { callback_(event); });
      return poll();
    }
    if (is_no_news(answer.status())) return poll();
    LOG(debug, "watching '{}': {}", name_, answer.status().message());
    // One whose nodes are gone: the next one may come.
    if (answer.status().code() == ErrorCode::kObjectLost) poll_later(loop_);
  }

  EventLoop& loop_;  // of the process, on which answers come
  const std::string name_;
  const std::string name_space_;
  const std::function<void(const PublishedEvent&)> callback_;
  std::uint64_t version_ = 0;  // touched on the loop
};

Watch Watch::on_published(const QueryContextPtr& queries, std::string name, std::string name_space,
                          std::function<void(const PublishedEvent&)> callback) {
  auto state = std::make_shared<OfPublished>(queries, std::move(name), std::move(name_space),
                                             std::move(callback));
  if (!can_call_back(*queries)) return {};
  state->poll();
  return Watch(std::move(state));
}

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    stop();
    state_ = std::move(other.state_);
  }
  return *this;
}

void Watch::stop() {
  if (state_) std::exchange(state_, nullptr)->stop();
}

Watch Watch::on_actor(const QueryContextPtr& queries, ActorId actor,
                      std::function<void(const ActorEvent&)> callback) {
  auto state = std::make_shared<OfActor>(queries, actor, std::move(callback));
  if (!can_call_back(*queries)) return {};
  state->poll();
  return Watch(std::move(state));
}

Watch Watch::on_nodes(const QueryContextPtr& queries,
                      std::function<void(const NodeEvent&)> callback) {
  auto state = std::make_shared<OfNodes>(queries, std::move(callback));
  if (!can_call_back(*queries)) return {};
  state->poll();
  return Watch(std::move(state));
}

}  // namespace runtime
