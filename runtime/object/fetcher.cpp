#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "runtime/core/check.h"
#include "runtime/core/log.h"
#include "runtime/object/store_state.h"
#include "runtime/transport/listener.h"

namespace runtime::object_detail {

namespace {

constexpr std::chrono::seconds kConnectTimeout{5};
// Without a connection and without a byte in between, so often (each after twice the pause of the one before) until a node counts as gone.
constexpr int kReconnectsMax = 5;
constexpr std::chrono::milliseconds kReconnectPause{20};

}  // namespace

/// A copy, whole or on its way.
struct Fetcher::Replica {
  ObjectLocation location;  // here
  std::uint64_t bytes = 0;  // of its extent
  bool whole = false;
  std::uint64_t last_use = 0;
  std::vector<Done> waiting;
};

/// One copy on its way. Chunks keep it alive, and it keeps the extent leased, so that a late chunk never lands in memory that is used anew.
struct Fetcher::Pull {
  Pull(std::shared_ptr<StoreMemory> memory, std::uint64_t extent) : memory(std::move(memory)), extent(extent) {}
  ~Pull() {
    if (keep) return;
    memory->loop.post([memory = memory, extent = extent] {
      memory->table.give_back(extent, kStoreItself);
      memory->changed();
    });
  }

  std::shared_ptr<StoreMemory> memory;
  const std::uint64_t extent;
  ObjectLocation source;
  std::shared_ptr<Replica> replica;
  std::map<int, std::shared_ptr<Channel>> streams;  // those that are open
  int opening = 0;
  int failures = 0;            // to connect, since the last part came
  std::uint64_t asked = 0;     // bytes, up to here
  std::deque<ByteRange> again; // asked for on a connection that broke
  std::uint64_t received = 0;
  int in_flight = 0;
  int last_stream = -1;
  bool over = false;
  bool keep = false;           // the copy is whole: the extent stays
};

/// A connection to another node, or one being made.
struct Fetcher::Peer {
  std::shared_ptr<Channel> channel;
  std::vector<UniqueFunction<void(Result<std::shared_ptr<Channel>>)>> waiting;
};

Fetcher::Fetcher(std::shared_ptr<StoreMemory> memory, const ObjectStoreOptions& options) : memory_(std::move(memory)), options_(options) {}

void Fetcher::fetch(const ObjectLocation& location, Deadline room_deadline, Done done) {
  if (stopped_) return done(unavailable("object store: stopped"));
  auto& replica = replicas_[location.id];
  if (replica) {
    replica->last_use = ++uses_;
    if (!replica->whole) return replica->waiting.push_back(std::move(done));
    return done(replica->location);
  }
  replica = std::make_shared<Replica>();
  replica->last_use = ++uses_;
  replica->waiting.push_back(std::move(done));
  start(location, room_deadline, replica);
}

void Fetcher::start(const ObjectLocation& location, Deadline room_deadline, std::shared_ptr<Replica> replica) {
  const std::string what = "object " + location.id.short_hex() + " of " + std::to_string(location.size) + " bytes";
  replica->location = location;
  if (location.size > memory_->table.capacity_bytes()) {
    return finish(replica, resource_exhausted(what + ": larger than this node's object store of " +
                                              std::to_string(memory_->table.capacity_bytes()) + " bytes"));
  }
  auto attempt = [self = shared_from_this(), location, replica] {
    auto extent = self->memory_->lease(object_bytes(location.size), kStoreItself);
    if (extent) self->pull_into(*extent, location, replica);
    return extent.has_value();
  };
  auto give_up = [self = shared_from_this(), replica, what] {
    self->finish(replica, resource_exhausted(what + ": no room for a copy in this node's object store"));
  };
  memory_->line->wait(object_bytes(location.size), kStoreItself, room_deadline, std::move(attempt), std::move(give_up));
  if (memory_->balance) memory_->balance();
}

void Fetcher::pull_into(const Extent& extent, const ObjectLocation& location, std::shared_ptr<Replica> replica) {
  auto pull = std::make_shared<Pull>(memory_, extent.id);
  pull->source = location;
  pull->replica = replica;
  replica->bytes = extent.range.size;
  replica->location.node = options_.credentials.node;
  replica->location.segment = 0;
  replica->location.extent = extent.id;
  replica->location.offset = extent.range.begin + sizeof(ObjectHeader);
  memory_->segment->stamp(replica->location, ObjectHeader::kWriting);
  const std::uint64_t parts = (location.size + options_.chunk_bytes - 1) / options_.chunk_bytes;
  for (int stream = 0; stream < options_.streams && (stream == 0 || static_cast<std::uint64_t>(stream) < parts); ++stream) open_stream(pull, stream);
}

void Fetcher::open_stream(const std::shared_ptr<Pull>& pull, int stream) {
  ++pull->opening;
  with_peer(pull->source.endpoint, stream, [self = shared_from_this(), pull, stream](Result<std::shared_ptr<Channel>> channel) {
    self->on_stream(pull, stream, std::move(channel));
  });
}

void Fetcher::on_stream(const std::shared_ptr<Pull>& pull, int stream, Result<std::shared_ptr<Channel>> channel) {
  --pull->opening;
  if (stopped_ || pull->over) return;
  if (!channel.ok()) return lost_stream(pull, stream, channel.status());
  pull->streams[stream] = std::move(*channel);
  pump(pull);
}

// The others go on without it. With none left it is opened again, after a pause.
void Fetcher::lost_stream(const std::shared_ptr<Pull>& pull, int stream, Status why) {
  pull->streams.erase(stream);
  if (!pull->streams.empty()) return pump(pull);
  if (pull->opening > 0) return;
  if (pull->failures >= kReconnectsMax) {
    pull->over = true;
    return finish(pull->replica, why.with_context("object " + pull->source.id.short_hex() + ": its node cannot be reached"));
  }
  auto pause = std::make_shared<asio::steady_timer>(memory_->loop.context(), kReconnectPause * (1 << pull->failures++));
  ++pull->opening;
  pause->async_wait([self = shared_from_this(), pull, stream, pause](const boost::system::error_code&) {
    --pull->opening;
    if (!self->stopped_ && !pull->over) self->open_stream(pull, stream);
  });
}

void Fetcher::with_peer(const std::string& where, int stream, UniqueFunction<void(Result<std::shared_ptr<Channel>>)> then) {
  auto& peer = peers_[{where, stream}];
  if (!peer) peer = std::make_shared<Peer>();
  if (peer->channel && !peer->channel->closed()) return then(peer->channel);
  peer->channel.reset();
  peer->waiting.push_back(std::move(then));
  if (peer->waiting.size() > 1) return;  // being made
  auto endpoint = Endpoint::parse(where);
  auto tell = [weak = weak_from_this(), peer](Result<std::shared_ptr<Channel>> channel) {
    if (channel.ok()) {
      if (weak.expired()) return (*channel)->close(cancelled("the object store was stopped"));
      peer->channel = *channel;
    }
    for (auto& waiting : std::exchange(peer->waiting, {})) waiting(channel);
  };
  if (!endpoint.ok()) return tell(endpoint.status());
  ConnectOptions options;
  options.deadline = deadline_after(kConnectTimeout);
  connect(memory_->loop, *endpoint, options_.credentials, options, tell);
}

void Fetcher::pump(const std::shared_ptr<Pull>& pull) {
  const std::uint64_t size = pull->source.size;
  const int in_flight_max = std::max(options_.chunks_in_flight_max, static_cast<int>(pull->streams.size()));
  while (!pull->over && !pull->streams.empty() && pull->in_flight < in_flight_max) {
    ByteRange part;
    if (!pull->again.empty()) {
      part = pull->again.front();
      pull->again.pop_front();
    } else if (pull->asked < size || (size == 0 && pull->in_flight == 0)) {
      part = {pull->asked, std::min(options_.chunk_bytes, size - pull->asked)};
      pull->asked += part.size;
    } else {
      return;
    }
    // By turns: what is asked next goes where the part before it did not.
    auto stream = pull->streams.upper_bound(pull->last_stream);
    if (stream == pull->streams.end()) stream = pull->streams.begin();
    pull->last_stream = stream->first;
    ask(pull, stream->first, part);
  }
}

void Fetcher::ask(const std::shared_ptr<Pull>& pull, int stream, ByteRange part) {
  const std::uint64_t at = pull->replica->location.offset + part.begin;
  // Touched a part at a time, so that other connections get their turn in between.
  const std::uint64_t page = at / kPageBytes * kPageBytes;
  if (part.size >= kPageBytes && !memory_->segment->is_populated(page, at + part.size - page)) {
    if (Status status = memory_->segment->populate(page, at + part.size - page); !status.ok()) {
      pull->over = true;
      return finish(pull->replica, status.with_context("object " + pull->source.id.short_hex()));
    }
  }
  ++pull->in_flight;
  Message request;
  request.kind = FrameKind::kObject;
  request.meta = object_wire::encode_request(object_wire::Read{pull->source, part.begin, part.size});
  pull->streams[stream]->request_into(std::move(request), deadline_after(options_.chunk_timeout), {memory_->segment->writable() + at, part.size}, pull,
                                      [self = shared_from_this(), pull, stream, part](Result<Message> reply) {
                                        self->on_chunk(pull, stream, part, std::move(reply));
                                      });
}

void Fetcher::on_chunk(const std::shared_ptr<Pull>& pull, int stream, ByteRange part, Result<Message> reply) {
  --pull->in_flight;
  if (pull->over) return;
  if (!reply.ok() && reply.status().code() == ErrorCode::kUnavailable) {
    pull->again.push_back(part);
    auto open = pull->streams.find(stream);
    if (open == pull->streams.end() || !open->second->closed()) return pump(pull);  // another of its parts has seen to it
    return lost_stream(pull, stream, reply.status());
  }
  Status status = reply.status();
  if (status.ok()) status = object_wire::decode_reply(reply->meta).status();
  if (status.ok() && reply->payload.size() != part.size) {
    status = invalid_argument("a chunk of " + std::to_string(reply->payload.size()) + " bytes came instead of " + std::to_string(part.size));
  }
  if (!status.ok()) {
    pull->over = true;
    return finish(pull->replica, status.with_context("object " + pull->source.id.short_hex()));
  }
  // Small ones arrive in a block of the connection.
  std::byte* target = memory_->segment->writable() + pull->replica->location.offset + part.begin;
  if (part.size > 0 && reply->payload.first().data() != target) std::memcpy(target, reply->payload.first().data(), part.size);
  pull->failures = 0;
  pull->received += part.size;
  if (pull->received < pull->source.size) return pump(pull);
  pull->over = true;
  pull->keep = true;
  memory_->segment->stamp(pull->replica->location, ObjectHeader::kSealed);
  pull->replica->whole = true;
  replica_bytes_ += pull->replica->bytes;
  finish(pull->replica, {});
}

void Fetcher::finish(const std::shared_ptr<Replica>& replica, Status status) {
  if (!status.ok()) replicas_.erase(replica->location.id);
  for (auto& done : std::exchange(replica->waiting, {})) {
    if (status.ok()) {
      done(replica->location);
    } else {
      done(status);
    }
  }
}

bool Fetcher::drop_oldest() {
  auto oldest = replicas_.end();
  for (auto it = replicas_.begin(); it != replicas_.end(); ++it) {
    const Replica& replica = *it->second;
    if (!replica.whole || memory_->table.pins_of(replica.location.extent) > 0) continue;
    if (oldest == replicas_.end() || replica.last_use < oldest->second->last_use) oldest = it;
  }
  if (oldest == replicas_.end()) return false;
  replica_bytes_ -= oldest->second->bytes;
  memory_->segment->stamp(oldest->second->location, ObjectHeader::kFreed);
  CHECK(memory_->table.give_back(oldest->second->location.extent, kStoreItself));
  replicas_.erase(oldest);
  return true;
}

void Fetcher::stop() {
  if (std::exchange(stopped_, true)) return;
  for (auto& [endpoint, peer] : peers_) {
    if (peer->channel) peer->channel->close(cancelled("the object store was stopped"));
  }
  auto replicas = std::exchange(replicas_, {});
  for (auto& [id, replica] : replicas) finish(replica, unavailable("object store: stopped"));
}

}  // namespace runtime::object_detail
