// Borrowers: processes and nodes that got objects from others than their owners, and what the
// owners know of it. Private to this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/store/borrow_table.h"
#include "runtime/store/ended_owners.h"
#include "runtime/store/peer_links.h"
#include "runtime/store/store_clients.h"
#include "runtime/store/store_memory.h"

namespace runtime::object_detail {

/// Lives on the event loop.
class Borrowers : public std::enable_shared_from_this<Borrowers> {
 public:
  using Client = StoreClients::Client;
  /// Of an object of this node that is not borrowed any more. True when the store has kept it
  /// itself, so that no owner is to be told.
  using OnReturned = std::function<bool(const ObjectLocation&)>;

  Borrowers(std::shared_ptr<StoreMemory> memory, std::shared_ptr<PeerLinks> peers, NodeId node,
            std::shared_ptr<StoreClients> clients, std::shared_ptr<const EndedOwners> ended)
      : memory_(std::move(memory)),
        peers_(std::move(peers)),
        node_(node),
        clients_(std::move(clients)),
        ended_(std::move(ended)) {}

  /// Before anything is borrowed.
  void on_returned(OnReturned callback) { on_returned_ = std::move(callback); }

  void keep(const std::shared_ptr<Channel>& channel, const Message& message,
            const object_wire::Keep& keep);
  void release(const std::shared_ptr<Channel>& channel, const object_wire::Release& release);
  /// In its name, without telling the owner.
  void add(Client client, const ObjectLocation& location) { table_.add(client, location); }
  void client_ended(Client client);
  /// A connection to another node's store ended, and with it what it knew of our borrowers.
  void renew(const std::string& endpoint) { renew(endpoint, 0); }

  bool has(const ObjectLocation& location) const { return table_.has(location); }
  std::size_t size() const { return table_.size(); }

 private:
  bool is_here(const ObjectLocation& location) const { return location.node == node_; }
  /// `done` may be null.
  void tell_owner(const ObjectLocation& location, bool borrowed, UniqueFunction<void(Status)> done);
  void tell_other_node(const ObjectLocation& location, bool borrowed,
                       UniqueFunction<void(Status)> done);
  void returned(const ObjectLocation& location);
  void renew(const std::string& endpoint, int attempt);

  const std::shared_ptr<StoreMemory> memory_;
  const std::shared_ptr<PeerLinks> peers_;
  const NodeId node_;
  const std::shared_ptr<StoreClients> clients_;
  const std::shared_ptr<const EndedOwners> ended_;
  OnReturned on_returned_;
  BorrowTable table_;
};

}  // namespace runtime::object_detail
