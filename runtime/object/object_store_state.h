// The state of an ObjectStore, whose methods are in object_store.cpp (memory) and
// object_store_sharing.cpp (who keeps what). Private to runtime/object.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "runtime/object/borrow_table.h"
#include "runtime/object/object_store.h"
#include "runtime/object/source_tree.h"
#include "runtime/object/spiller.h"
#include "runtime/object/store_state.h"

namespace runtime {

using object_detail::BorrowTable;
using object_detail::Fetcher;
using object_detail::PeerLinks;
using object_detail::SourceTree;
using object_detail::Spiller;
using object_detail::SpillFolder;
using object_detail::StoreMemory;

struct ObjectStore::State : std::enable_shared_from_this<ObjectStore::State> {
  State(EventLoop& loop, ObjectStoreOptions options_in, std::unique_ptr<Segment> segment)
      : options(std::move(options_in)),
        memory(std::make_shared<StoreMemory>(loop, std::move(segment), options)),
        peers(std::make_shared<PeerLinks>(loop, options.credentials)),
        fetcher(std::make_shared<Fetcher>(memory, peers, options)) {
    memory->endpoint = options.endpoint;
  }

  void wire(std::unique_ptr<SpillFolder> folder);
  void stop();

  using Client = ExtentTable::Client;

  struct Connected {
    Client client;
    std::weak_ptr<Channel> channel;
  };
  /// Who held extents that have ended with it.
  struct Ended {
    std::string who;  // "driver", "worker 7f3a0011"
    pid_t pid = 0;
  };

  Client client_of(const std::shared_ptr<Channel>& channel) {
    auto [known, fresh] = clients.try_emplace(channel->serial(), Connected{next_client, channel});
    if (fresh) ++next_client;
    return known->second.client;
  }

  Deadline room_deadline(std::uint64_t wait_ms) const {
    return deadline_after(std::min(
        options.wait_max, std::chrono::milliseconds(std::min<std::uint64_t>(wait_ms, 1ull << 40))));
  }
  std::string full(std::uint64_t bytes) const;
  void ask_holders(std::uint64_t bytes, UniqueFunction<void(bool)> done);
  /// Calls `done` with the pinned extent once its bytes are in memory; the pin is the client's (or
  /// the store's).
  void pin_resident(std::uint64_t extent, Client client, Deadline deadline,
                    UniqueFunction<void(Result<Extent>)> done);
  void send_part(const std::shared_ptr<Channel>& channel, const Message& request,
                 const object_wire::Read& read, const Extent& extent);
  void send_bytes(const std::shared_ptr<Channel>& channel, const Message& request,
                  const object_wire::Read& read, std::uint64_t extent,
                  std::span<const std::byte> object);

  static void answer(const std::shared_ptr<Channel>& channel, const Message& request, Buffer meta,
                     Payload payload = {}) {
    if (request.id == 0) return;
    // A failure means that the connection is gone, and detach() follows.
    (void)channel->send(reply_to(request, std::move(meta), std::move(payload)));
  }

  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Open&);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Lease& lease);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::GiveBack& back);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Pin& pin);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Unpin& unpin);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Fetch& fetch);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Read& read);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Keep& keep);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Release& release);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Source& source);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::Remake& remake);
  void on(const std::shared_ptr<Channel>& channel, const Message& message,
          const object_wire::TakeOver& take);
  /// What a store asks of processes, or of stores that it has connected to, is not asked of it.
  template <class Other>
  void on(const std::shared_ptr<Channel>& channel, const Message& message, const Other&) {
    answer(channel, message,
           object_wire::encode_failure(invalid_argument("a node's store does not serve this")));
  }

  /// Why there is no such extent.
  Status lost(std::uint64_t extent) const;
  void client_ended(const Channel& channel);
  bool is_here(const ObjectLocation& location) const {
    return location.node == options.credentials.node;
  }
  std::shared_ptr<Channel> channel_of(Client client) const;
  /// Tells an object's owner that it is borrowed, or no more. `done` may be null.
  void tell_owner(const ObjectLocation& location, bool borrowed, UniqueFunction<void(Status)> done);
  /// Asks the processes of this node; the first that makes it again answers.
  void have_made_again(const object_wire::Remake& remake,
                       UniqueFunction<void(Result<ObjectLocation>)> done);
  void remove_borrow(Client client, const ObjectLocation& location);
  void borrow_ended(const ObjectLocation& location);
  /// A connection to another node's store ended, and with it what it knew of our borrowers.
  void renew_borrows(const std::string& endpoint, int attempt);
  void send_ended(std::uint64_t extent);

  void adopt(const ObjectLocation& location, UniqueFunction<void(Result<ObjectLocation>)> done);
  void adopt_here(const ObjectLocation& location, const Extent& extent,
                  UniqueFunction<void(Result<ObjectLocation>)> done);
  /// The table keeps its extent once more.
  void adopt_copy(ObjectId id, Result<ObjectLocation> copy,
                  UniqueFunction<void(Result<ObjectLocation>)> done);
  /// As Fetcher::fetch; of an object whose node was drained from where it is now. `done` may get a
  /// place that the store itself has adopted.
  void fetch_moved(const ObjectLocation& location, Deadline room_deadline,
                   UniqueFunction<void(Result<ObjectLocation>)> done);
  const ObjectLocation* adopted_as(ObjectId object) const;
  /// The drivers and workers here, which refer to objects.
  std::vector<std::shared_ptr<Channel>> processes() const;
  void take_over_from(NodeId node, std::chrono::milliseconds timeout,
                      UniqueFunction<void(std::uint64_t)> done);
  void note_adopted(const ObjectLocation& location);
  void release_adopted(std::uint64_t extent, std::uint32_t count);
  void drop(const ObjectLocation& location);
  void list(std::chrono::milliseconds timeout, UniqueFunction<void(StoreList)> done);
  void list_own(StoreList& list) const;
  ObjectStoreStats stats() const;

  ObjectStoreOptions options;
  const std::shared_ptr<StoreMemory> memory;
  const std::shared_ptr<PeerLinks> peers;
  const std::shared_ptr<Fetcher> fetcher;
  std::shared_ptr<Spiller> spiller;
  std::map<std::uint64_t, Connected> clients;  // by their channel's serial
  Client next_client = object_detail::kStoreItself + 1;
  BorrowTable borrows;
  SourceTree sources;
  struct Adopted {
    ObjectLocation location;
    std::uint32_t count = 0;    // adoptions: one object may be published under several names
    std::uint32_t dropped = 0;  // of these, given up and still borrowed
  };
  std::map<std::uint64_t, Adopted> adopted;        // by extent
  std::unordered_map<std::uint64_t, Ended> ended;  // by extent
  std::deque<std::uint64_t> ended_order;           // oldest first
  std::uint64_t sent_bytes = 0;
  bool keeps_what_ends = false;  // the node is about to leave
};

}  // namespace runtime
