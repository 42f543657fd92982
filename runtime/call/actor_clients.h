// ActorClients: the clients of actors that a process has, and its connections to their processes.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/call/fwd.h"
#include "runtime/control/membership.h"
#include "runtime/core/ids.h"

namespace runtime {

/// Clients and links live as long as handles use them. Any thread.
class ActorClients {
 public:
  ActorClients() = default;
  ActorClients(const ActorClients&) = delete;
  ActorClients& operator=(const ActorClients&) = delete;

  /// The one client for the actor; a newer incarnation replaces an older one. `context` has this.
  std::shared_ptr<ActorClient> client_for(const CallerContextPtr& context,
                                          const ActorAddress& address);
  /// The existing client for the actor; null: none.
  std::shared_ptr<ActorClient> find(ActorId actor) const;
  /// The connection to the worker process of that address, shared by the clients of its actors.
  std::shared_ptr<WorkerLink> link_for(const CallerContextPtr& context,
                                       const ActorAddress& address);
  std::vector<std::shared_ptr<ActorClient>> clients() const;
  std::vector<std::shared_ptr<WorkerLink>> links() const;

  /// For the destructors of clients and links.
  void forget_client(ActorId actor);
  void forget_link(WorkerId worker);

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<ActorId, std::weak_ptr<ActorClient>> clients_;
  std::unordered_map<WorkerId, std::weak_ptr<WorkerLink>> links_;
};

}  // namespace runtime
