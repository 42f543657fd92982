// WorkerLink: the one connection of this process to a worker process, shared by the clients of all
// actors there.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/call/fwd.h"
#include "runtime/control/membership.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace runtime {

/// Lives as long as some client uses it; the connection ends with it. Any thread. Lock order: a
/// client's mutex, then this one's; clients are never called with it held.
class WorkerLink : public std::enable_shared_from_this<WorkerLink> {
 public:
  /// The client of one actor there. Called on the event loop.
  class User {
   public:
    /// The newest start of the actor that it knows. Any thread.
    virtual std::uint64_t incarnation() const = 0;
    virtual void on_connected(const WorkerLink* worker,
                              Result<std::shared_ptr<Channel>> channel) = 0;
    virtual void on_notice(const std::shared_ptr<Channel>& from, const CallNotice& notice,
                           const Message& message) = 0;
    virtual void on_channel_closed(const Channel* channel, Status reason) = 0;

   protected:
    ~User() = default;
  };

  /// `address` of any actor there: what is of the process counts.
  WorkerLink(CallerContextPtr context, const ActorAddress& address);
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;
  ~WorkerLink();

  /// Fills in what an address says of the process.
  void describe(ActorAddress& address) const;
  WorkerId worker() const { return worker_; }
  NodeId node() const { return node_; }
  std::int32_t pid() const { return pid_; }
  /// Of shared actors.
  bool is_shared() const { return is_shared_; }
  /// On this process's node: objects need not be carried to it.
  bool is_local() const { return is_local_; }

  /// The connection, if it is open. Else null: it is made, and user->on_connected() is called once.
  /// From now on the user also hears of notices for its actor and of the connection's end, until
  /// that or detach().
  std::shared_ptr<Channel> attach(ActorId actor, const std::shared_ptr<User>& user);
  /// The connection, if it is open.
  std::shared_ptr<Channel> channel() const;
  /// For the user's destructor.
  void detach(ActorId actor);
  /// Ends the connection; what is outstanding on it fails.
  void close(Status reason);

 private:
  using Users = std::unordered_map<ActorId, std::weak_ptr<User>>;

  void connect();
  void on_connected(Result<std::shared_ptr<Channel>> channel);
  void on_message(const std::shared_ptr<Channel>& from, const Message& message);
  void on_closed(const Channel* channel, const Status& reason);
  /// Sees to it that the end of the process behind an interrupted connection is noticed before the
  /// connection is given up.
  void watch_interrupted(std::weak_ptr<Channel> channel);
  void probe_peer(const std::weak_ptr<Channel>& channel);

  const CallerContextPtr context_;
  const WorkerId worker_;
  const NodeId node_;
  const std::string unix_path_;
  const std::string node_address_;
  const std::int32_t pid_;
  const bool is_shared_;
  const bool is_local_;

  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<Channel> channel_;
  bool connecting_ = false;
  Users users_;    // of the open connection
  Users waiting_;  // for the connection that is being made
};

}  // namespace runtime
