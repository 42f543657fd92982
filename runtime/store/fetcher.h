// Fetcher: copies of the objects of other nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/store/object_store_options.h"
#include "runtime/store/object_wire.h"
#include "runtime/store/peer_links.h"
#include "runtime/store/store_memory.h"

namespace runtime::object_detail {

/// On the event loop. Copies of objects of other nodes: brings each here once, however many ask,
/// and keeps it until room is needed or the object ends. An object comes in parts over several
/// connections, straight into its place. When one breaks, what it still owed is asked for again,
/// and what has come stays. A large one comes from whichever node its own names (SourceTree), and
/// goes on to others from here while it arrives.
class Fetcher : public std::enable_shared_from_this<Fetcher> {
 public:
  using Done = UniqueFunction<void(Result<ObjectLocation>)>;
  /// Whether a node is in the cluster, if that can be known.
  using IsMember = std::function<void(NodeId, UniqueFunction<void(bool)>)>;

  Fetcher(std::shared_ptr<StoreMemory> memory, std::shared_ptr<PeerLinks> peers,
          const ObjectStoreOptions& options);

  /// Calls `done` once, maybe before returning. The location is of the copy; pin it at once.
  void fetch(const ObjectLocation& location, Deadline room_deadline, Done done);
  /// Calls `done` once these bytes of the copy are here, with their place. Errors: kNotFound (there
  /// is no copy and none coming), why it does not come.
  void when_here(const ObjectLocation& location, ByteRange bytes,
                 UniqueFunction<void(Result<ObjectLocation>)> done);
  /// The whole copy is kept in the store's own name from now on (ExtentTable::keep), and no copy of
  /// this any more. Nothing when there is none.
  std::optional<ObjectLocation> hand_over(const ObjectId& object);
  /// The objects have ended: copies that no process reads go now, others when room is needed.
  void ended(const std::vector<ObjectId>& objects);
  /// The connection is gone over which the node at `endpoint` would have said that its objects end.
  /// Copies of them that no process uses for a while go.
  void connection_lost(const std::string& endpoint);
  /// Drops the copy that was used longest ago. False when there is none without a pin.
  bool drop_oldest();
  std::uint64_t replica_bytes() const { return replica_bytes_; }
  std::uint64_t fetched_bytes() const { return fetched_bytes_; }
  /// Ids of whole copies.
  std::vector<ObjectLocation> copies() const;
  /// Fails what is under way.
  void stop();

 private:
  struct Replica;
  struct Pull;
  using PullPtr = std::shared_ptr<Pull>;

  void start(const ObjectLocation& location, Deadline room_deadline,
             std::shared_ptr<Replica> replica);
  void pull_into(const Extent& extent, const ObjectLocation& location,
                 std::shared_ptr<Replica> replica);
  void choose_source(const PullPtr& pull, std::string failed);
  void open_streams(const PullPtr& pull);
  void open_stream(const PullPtr& pull, int stream);
  void on_stream(const PullPtr& pull, int stream, Result<std::shared_ptr<Channel>> channel);
  void lost_stream(const PullPtr& pull, int stream, Status why);
  void unreachable(const PullPtr& pull, Status why);
  void watch_progress(const PullPtr& pull);
  /// Fails it if its node is known to have left.
  void fail_if_left(const PullPtr& pull);
  void pump(const PullPtr& pull);
  void ask(const PullPtr& pull, int stream, ByteRange part);
  void on_chunk(const PullPtr& pull, std::uint64_t round, int stream, ByteRange part,
                Result<Message> reply);
  void fail(const PullPtr& pull, Status why);
  void finish(const std::shared_ptr<Replica>& replica, Status status);
  void drop(const ObjectId& object);
  /// Drops a copy once no process has used it for a while, because no notice will come of its
  /// object's end.
  void expire_later(const ObjectId& object);

  std::shared_ptr<StoreMemory> memory_;
  const std::shared_ptr<PeerLinks> peers_;
  const ObjectStoreOptions options_;
  std::unordered_map<ObjectId, std::shared_ptr<Replica>> replicas_;
  std::uint64_t replica_bytes_ = 0;
  std::uint64_t fetched_bytes_ = 0;
  std::uint64_t uses_ = 0;
  bool stopped_ = false;
};

}  // namespace runtime::object_detail
