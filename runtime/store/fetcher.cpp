#include "runtime/store/fetcher.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "runtime/core/check.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"

namespace runtime::object_detail {

namespace {

// A node counts as gone after this many tries without a connection and without a byte in between.
// Each comes after twice the pause of the one before.
constexpr int kReconnectsMax = 5;
constexpr std::chrono::milliseconds kReconnectPause{20};
// Objects of fewer parts come from their own node: asking it whom else to ask would take as long.
constexpr std::uint64_t kTreeChunksMin = 2;
constexpr std::chrono::seconds kSourceTimeout{5};
// A node that sends nothing for this long may have left without a word.
constexpr std::chrono::seconds kProgressPause{2};
constexpr std::chrono::seconds kCopyIdle{5};

Status has_left(const ObjectLocation& location) {
  return object_lost("node " + location.node.short_hex() + " at " + location.endpoint +
                     " has left the cluster, and the object with it");
}

}  // namespace

/// A copy, whole or in transit.
struct Fetcher::Replica {
  ObjectLocation location;  // here
  std::string home;         // the endpoint of the object's own node
  std::uint64_t bytes = 0;  // of its extent
  Deadline asked = steady_now();
  bool whole = false;
  bool ended = false;  // the object has: it is of no use any more
  std::uint64_t last_use = 0;
  std::vector<Done> waiting;
  std::weak_ptr<Pull> pull;
};

/// One copy in transit. Chunks keep it alive, and it keeps the extent leased, so that a late chunk
/// never lands in memory that is used again.
struct Fetcher::Pull {
  Pull(std::shared_ptr<StoreMemory> store_memory, std::uint64_t leased)
      : memory(std::move(store_memory)), extent(leased) {}
  ~Pull() {
    if (keep) return;
    memory->loop.post([memory = memory, extent = extent] {
      memory->table.give_back(extent, kStoreItself);
      memory->changed();
    });
  }

  bool has(ByteRange bytes) const {
    for (std::uint64_t chunk = bytes.begin / chunk_bytes; chunk * chunk_bytes < bytes.end();
         ++chunk) {
      if (!here[chunk]) return false;
    }
    return true;
  }

  struct Waiter {
    ByteRange bytes;
    Done done;
  };

  std::shared_ptr<StoreMemory> memory;
  const std::uint64_t extent;
  ObjectLocation source;
  std::string from;         // the endpoint that serves it
  std::uint64_t round = 0;  // grows when another serves it
  bool choosing = false;
  std::shared_ptr<Replica> replica;
  std::map<int, std::shared_ptr<Channel>> streams;  // those that are open
  int opening = 0;
  int failures = 0;  // to connect, since the last part came
  std::uint64_t chunk_bytes = 1;
  std::uint64_t asked = 0;  // bytes, up to here
  std::deque<ByteRange>
      again;               // asked for on a connection that broke, or of a node that had it no more
  std::vector<bool> here;  // by chunk
  std::uint64_t received = 0;
  int in_flight = 0;
  int last_stream = -1;
  std::vector<Waiter> waiters;  // other nodes
  bool over = false;
  bool keep = false;  // the copy is whole: the extent stays
};

Fetcher::Fetcher(std::shared_ptr<StoreMemory> memory, std::shared_ptr<PeerLinks> peers,
                 const ObjectStoreOptions& options)
    : memory_(std::move(memory)), peers_(std::move(peers)), options_(options) {}

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

void Fetcher::start(const ObjectLocation& location, Deadline room_deadline,
                    std::shared_ptr<Replica> replica) {
  const std::string what = std::to_string(location.size) + " bytes";
  replica->location = location;
  replica->home = location.endpoint;
  if (location.size > memory_->table.capacity_bytes()) {
    return finish(replica, resource_exhausted(what + " are more than this node's object store of " +
                                              std::to_string(memory_->table.capacity_bytes()) +
                                              " bytes takes"));
  }
  auto attempt = [self = shared_from_this(), location, replica] {
    auto extent = self->memory_->lease(object_bytes(location.size), kStoreItself);
    if (extent) self->pull_into(*extent, location, replica);
    return extent.has_value();
  };
  auto give_up = [self = shared_from_this(), replica, what] {
    if (self->stopped_) return;  // stop() has said so
    const std::string why =
        self->memory_->full ? self->memory_->full(replica->location.size) : "it was stopped";
    self->finish(replica, resource_exhausted("no room for a copy of " + what + ": " + why));
  };
  memory_->line->wait(object_bytes(location.size), kStoreItself, room_deadline, std::move(attempt),
                      std::move(give_up));
  if (memory_->balance) memory_->balance();
}

void Fetcher::pull_into(const Extent& extent, const ObjectLocation& location,
                        std::shared_ptr<Replica> replica) {
  auto pull = std::make_shared<Pull>(memory_, extent.id);
  pull->source = location;
  pull->from = location.endpoint;
  pull->replica = replica;
  pull->chunk_bytes = options_.chunk_bytes;
  pull->here.resize((location.size + options_.chunk_bytes - 1) / options_.chunk_bytes);
  replica->pull = pull;
  replica->bytes = extent.range.size;
  replica->location.node = options_.credentials.node;
  replica->location.endpoint = memory_->endpoint;
  replica->location.segment = 0;
  replica->location.extent = extent.id;
  replica->location.offset = extent.range.begin + sizeof(ObjectHeader);
  memory_->segment->stamp(replica->location, ObjectHeader::kWriting);
  if (options_.is_member) watch_progress(pull);
  if (pull->here.size() >= kTreeChunksMin)
    choose_source(pull, "");
  else
    open_streams(pull);
}

// -- From where

void Fetcher::choose_source(const PullPtr& pull, std::string failed) {
  if (std::exchange(pull->choosing, true)) return;
  ++pull->round;
  pull->streams.clear();
  object_wire::Source question{pull->source, memory_->endpoint, std::move(failed)};
  peers_->ask(pull->source.endpoint, question, deadline_after(kSourceTimeout),
              [self = shared_from_this(), pull](Result<object_wire::Reply> reply) {
                pull->choosing = false;
                if (self->stopped_ || pull->over) return;
                auto* found = reply.ok() ? std::get_if<object_wire::SourceFound>(&*reply) : nullptr;
                // Without an answer its own node is tried as if nothing had been asked: that says
                // what is wrong.
                pull->from =
                    found && !found->endpoint.empty() ? found->endpoint : pull->source.endpoint;
                self->open_streams(pull);
              });
}

void Fetcher::open_streams(const PullPtr& pull) {
  for (int stream = 0; stream < options_.streams &&
                       (stream == 0 || static_cast<std::size_t>(stream) < pull->here.size());
       ++stream)
    open_stream(pull, stream);
}

void Fetcher::open_stream(const PullPtr& pull, int stream) {
  ++pull->opening;
  peers_->with(pull->from, stream,
               [self = shared_from_this(), pull, round = pull->round,
                stream](Result<std::shared_ptr<Channel>> channel) {
                 --pull->opening;
                 if (round == pull->round) self->on_stream(pull, stream, std::move(channel));
               });
}

void Fetcher::on_stream(const PullPtr& pull, int stream, Result<std::shared_ptr<Channel>> channel) {
  if (stopped_ || pull->over) return;
  if (!channel.ok()) return lost_stream(pull, stream, channel.status());
  pull->streams[stream] = std::move(*channel);
  pump(pull);
}

// The others continue without it. With none left it is opened again, after a pause.
void Fetcher::lost_stream(const PullPtr& pull, int stream, Status why) {
  pull->streams.erase(stream);
  if (!pull->streams.empty()) return pump(pull);
  if (pull->opening > 0 || pull->choosing) return;
  if (pull->from != pull->source.endpoint) return choose_source(pull, pull->from);
  if (pull->failures >= kReconnectsMax) return unreachable(pull, std::move(why));
  // A node that is known to have left is not tried again.
  if (pull->failures == 0 && options_.is_member) fail_if_left(pull);
  auto pause =
      std::make_shared<Timer>(memory_->loop.context(), kReconnectPause * (1 << pull->failures++));
  ++pull->opening;
  pause->async_wait(
      [self = shared_from_this(), pull, stream, pause](const boost::system::error_code&) {
        --pull->opening;
        if (!self->stopped_ && !pull->over) self->open_stream(pull, stream);
      });
}

void Fetcher::fail_if_left(const PullPtr& pull) {
  options_.is_member(pull->source.node, [self = shared_from_this(), pull](bool is_member) {
    if (!is_member && !pull->over) self->fail(pull, has_left(pull->source));
  });
}

void Fetcher::watch_progress(const PullPtr& pull) {
  auto timer = std::make_shared<Timer>(memory_->loop.context(), kProgressPause);
  timer->async_wait([weak = weak_from_this(), weak_pull = std::weak_ptr<Pull>(pull),
                     received = pull->received, timer](const boost::system::error_code& ec) {
    auto self = weak.lock();
    auto watched = weak_pull.lock();
    if (ec || !self || !watched || self->stopped_ || watched->over) return;
    if (watched->received == received) self->fail_if_left(watched);
    self->watch_progress(watched);
  });
}

void Fetcher::unreachable(const PullPtr& pull, Status why) {
  const NodeId node = pull->source.node;
  auto decide = [self = shared_from_this(), pull, node, why = std::move(why)](bool is_member) {
    if (pull->over) return;
    if (!is_member) return self->fail(pull, has_left(pull->source));
    self->fail(pull, why.with_context("node " + node.short_hex() + " at " + pull->source.endpoint +
                                      " cannot be reached"));
  };
  if (options_.is_member)
    options_.is_member(node, std::move(decide));
  else
    decide(true);
}

// -- Parts

void Fetcher::pump(const PullPtr& pull) {
  const std::uint64_t size = pull->source.size;
  const int in_flight_max =
      std::max(options_.chunks_in_flight_max, static_cast<int>(pull->streams.size()));
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

void Fetcher::ask(const PullPtr& pull, int stream, ByteRange part) {
  const std::uint64_t at = pull->replica->location.offset + part.begin;
  // Touched a part at a time, so that other connections get their turn in between.
  const std::uint64_t page = at / kPageBytes * kPageBytes;
  if (part.size >= kPageBytes && !memory_->segment->is_populated(page, at + part.size - page)) {
    if (Status status = memory_->segment->populate(page, at + part.size - page); !status.ok())
      return fail(pull, std::move(status));
  }
  ++pull->in_flight;
  pull->streams[stream]->request_into(
      object_wire::request_message(object_wire::Read{pull->source, part.begin, part.size}),
      deadline_after(options_.chunk_timeout), {memory_->segment->writable() + at, part.size}, pull,
      [self = shared_from_this(), pull, round = pull->round, stream, part](Result<Message> reply) {
        self->on_chunk(pull, round, stream, part, std::move(reply));
      });
}

void Fetcher::on_chunk(const PullPtr& pull, std::uint64_t round, int stream, ByteRange part,
                       Result<Message> reply) {
  --pull->in_flight;
  if (pull->over) return;
  Status status = reply.status();
  const bool broken = !status.ok() && status.code() == ErrorCode::kUnavailable;
  if (status.ok()) status = object_wire::decode_reply(reply->meta).status();
  if (status.ok() && reply->payload.size() != part.size) {
    status = invalid_argument("a chunk of " + std::to_string(reply->payload.size()) +
                              " bytes came instead of " + std::to_string(part.size));
  }
  if (!status.ok()) {
    pull->again.push_back(part);
    if (round != pull->round) return pump(pull);  // asked of another node than now
    if (broken) {
      auto open = pull->streams.find(stream);
      if (open == pull->streams.end() || !open->second->closed())
        return pump(pull);  // another of its parts has seen to it
      return lost_stream(pull, stream, std::move(status));
    }
    if (pull->from != pull->source.endpoint) return choose_source(pull, pull->from);
    if (status.code() == ErrorCode::kNotFound) {
      status =
          object_lost("node " + pull->source.node.short_hex() +
                      " is gone, and another one answers at its address, " + pull->source.endpoint);
    }
    return fail(pull, std::move(status));
  }
  // Small ones arrive in a block of the connection.
  std::byte* target = memory_->segment->writable() + pull->replica->location.offset + part.begin;
  if (part.size > 0 && reply->payload.first().data() != target)
    std::memcpy(target, reply->payload.first().data(), part.size);
  pull->failures = 0;
  pull->received += part.size;
  fetched_bytes_ += part.size;
  if (part.size > 0) pull->here[part.begin / pull->chunk_bytes] = true;
  const bool whole = pull->received == pull->source.size;
  if (whole) {
    pull->over = true;
    pull->keep = true;
    memory_->segment->stamp(pull->replica->location, ObjectHeader::kSealed);
    pull->replica->whole = true;
    replica_bytes_ += pull->replica->bytes;
  }
  std::vector<Pull::Waiter> served;
  std::erase_if(pull->waiters, [&](Pull::Waiter& waiter) {
    if (!pull->has(waiter.bytes)) return false;
    served.push_back(std::move(waiter));
    return true;
  });
  for (Pull::Waiter& waiter : served) waiter.done(pull->replica->location);
  if (whole) return finish(pull->replica, {});
  pump(pull);
}

void Fetcher::fail(const PullPtr& pull, Status why) {
  pull->over = true;
  pull->streams.clear();
  for (Pull::Waiter& waiter : std::exchange(pull->waiters, {})) waiter.done(why);
  finish(pull->replica, std::move(why));
}

void Fetcher::finish(const std::shared_ptr<Replica>& replica, Status status) {
  if (options_.on_fetched)
    options_.on_fetched({replica->home, replica->location.size, replica->asked, status.ok()});
  if (!status.ok()) replicas_.erase(replica->location.id);
  for (auto& done : std::exchange(replica->waiting, {})) {
    if (status.ok())
      done(replica->location);
    else
      done(status);
  }
  if (!status.ok()) return;
  if (replica->ended)
    drop(replica->location.id);
  else if (replica->location.size <= options_.slab_bytes / 4)
    expire_later(replica->location.id);  // it shares its range with others
}

// -- Copies

void Fetcher::when_here(const ObjectLocation& location, ByteRange bytes,
                        UniqueFunction<void(Result<ObjectLocation>)> done) {
  auto found = replicas_.find(location.id);
  if (found == replicas_.end()) return done(not_found("there is no copy here (any more)"));
  Replica& replica = *found->second;
  replica.last_use = ++uses_;
  if (replica.whole) return done(replica.location);
  auto pull = replica.pull.lock();
  // Asked before there was room for the copy: nothing says when there will be.
  if (!pull || pull->over || bytes.size > location.size || bytes.begin > location.size - bytes.size)
    return done(not_found("the copy here is not on its way"));
  if (pull->has(bytes)) return done(replica.location);
  pull->waiters.push_back({bytes, std::move(done)});
}

std::optional<ObjectLocation> Fetcher::hand_over(const ObjectId& object) {
  auto found = replicas_.find(object);
  if (found == replicas_.end() || !found->second->whole) return std::nullopt;
  const ObjectLocation location = found->second->location;
  replica_bytes_ -= found->second->bytes;
  replicas_.erase(found);
  CHECK(memory_->table.keep(location.extent));
  CHECK(memory_->table.give_back(location.extent, kStoreItself));
  return location;
}

void Fetcher::ended(const std::vector<ObjectId>& objects) {
  for (const ObjectId& object : objects) {
    auto found = replicas_.find(object);
    if (found == replicas_.end()) continue;
    found->second->ended = true;
    if (found->second->whole) drop(object);
  }
}

void Fetcher::connection_lost(const std::string& endpoint) {
  for (const auto& [object, replica] : replicas_) {
    if (replica->whole && replica->home == endpoint) expire_later(object);
  }
}

// Readers keep the memory, and find the object no more once they have let go.
void Fetcher::drop(const ObjectId& object) {
  auto found = replicas_.find(object);
  if (found == replicas_.end()) return;
  replica_bytes_ -= found->second->bytes;
  if (memory_->table.pins_of(found->second->location.extent) == 0)
    memory_->segment->stamp(found->second->location, ObjectHeader::kFreed);
  CHECK(memory_->table.give_back(found->second->location.extent, kStoreItself));
  replicas_.erase(found);
  memory_->changed();
}

void Fetcher::expire_later(const ObjectId& object) {
  auto found = replicas_.find(object);
  if (found == replicas_.end()) return;
  auto idle = std::make_shared<Timer>(memory_->loop.context(), kCopyIdle);
  idle->async_wait([weak = weak_from_this(), object, idle,
                    last_use = found->second->last_use](const boost::system::error_code&) {
    auto self = weak.lock();
    if (!self || self->stopped_) return;
    auto now = self->replicas_.find(object);
    if (now == self->replicas_.end() || !now->second->whole) return;
    const bool is_used = now->second->last_use != last_use ||
                         self->memory_->table.pins_of(now->second->location.extent) > 0;
    if (is_used)
      self->expire_later(object);
    else
      self->drop(object);
  });
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

std::vector<ObjectLocation> Fetcher::copies() const {
  std::vector<ObjectLocation> all;
  for (const auto& [id, replica] : replicas_) {
    if (replica->whole) all.push_back(replica->location);
  }
  return all;
}

void Fetcher::stop() {
  if (std::exchange(stopped_, true)) return;
  auto replicas = std::exchange(replicas_, {});
  for (auto& [id, replica] : replicas) {
    if (auto pull = replica->pull.lock(); pull && !pull->over)
      fail(pull, unavailable("object store: stopped"));
    else
      finish(replica, unavailable("object store: stopped"));
  }
}

}  // namespace runtime::object_detail
