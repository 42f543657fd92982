#include "runtime/object/object_store.h"

#include <algorithm>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/core/memory_limit.h"
#include "runtime/object/object_store_state.h"

namespace runtime {

namespace {

// More in one answer than any node asks for.
constexpr std::uint64_t kReadBytesMax = 64 << 20;
// A process answers at once, unless it hangs.
constexpr std::chrono::seconds kSurrenderTimeout{2};
constexpr double kMemoryShare = 0.3;
// With less a store is of no use.
constexpr std::uint64_t kCapacityMin = 64ull << 20;

/// What the answer to a request needs of it.
Message without_content(const Message& message) {
  Message request;
  request.kind = message.kind;
  request.id = message.id;
  return request;
}

}  // namespace

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::Open&) {
  auto fd = memory->segment->duplicate();
  if (!fd.ok()) return answer(channel, message, object_wire::encode_failure(fd.status()));
  if (!channel->is_unix()) {
    return answer(channel, message,
                  object_wire::encode_failure(invalid_argument(
                      "shared memory is for processes on this machine; ask your own node")));
  }
  object_wire::StoreInfo info{options.credentials.node, options.endpoint, 0,
                              memory->segment->bytes(), options.slab_bytes};
  Message reply = reply_to(message, object_wire::encode_reply(info));
  reply.fds.push_back(std::move(*fd));
  (void)channel->send(std::move(reply));
}

std::string ObjectStore::State::full(std::uint64_t bytes) const {
  const ExtentTable& table = memory->table;
  return "object store of node " + options.credentials.node.short_hex() +
         " is full: " + std::to_string(bytes) + " bytes asked, " +
         std::to_string(table.capacity_bytes()) + " in all, " +
         std::to_string(table.leased_bytes()) + " held by processes, " +
         std::to_string(table.orphaned_bytes()) + " kept for readers" + spiller->describe() +
         "; drop references or give the node more";
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::Lease& lease) {
  Client client = client_of(channel);
  auto attempt = [self = shared_from_this(), channel, client, bytes = lease.bytes,
                  request = without_content(message)] {
    auto extent = self->memory->lease(bytes, client);
    if (extent) answer(channel, request, object_wire::encode_reply(*extent));
    return extent.has_value();
  };
  auto give_up = [self = shared_from_this(), channel, bytes = lease.bytes,
                  request = without_content(message)] {
    answer(channel, request, object_wire::encode_failure(resource_exhausted(self->full(bytes))));
  };
  // What can never fit need not wait.
  Deadline deadline = lease.bytes > 0 && lease.bytes <= memory->table.capacity_bytes()
                          ? room_deadline(lease.wait_ms)
                          : Deadline::min();
  memory->line->wait(lease.bytes, client, deadline, std::move(attempt), std::move(give_up));
  memory->balance();
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message&,
                            const object_wire::GiveBack& back) {
  Client client = client_of(channel);
  for (std::uint64_t extent : back.extents) {
    if (!memory->table.give_back(extent, client))
      LOG(warn, "object store: {} gave back extent {} which it does not hold",
          channel->describe_peer(), extent);
  }
  memory->changed();
}

void ObjectStore::State::pin_resident(std::uint64_t extent, Client client, Deadline deadline,
                                      UniqueFunction<void(Result<Extent>)> done) {
  auto pinned = memory->table.pin(extent, client);
  if (!pinned) {
    return done(lost(extent));
  }
  if (memory->table.is_resident(extent)) return done(*pinned);
  spiller->restore(
      extent, deadline,
      [self = shared_from_this(), extent, client, done = std::move(done)](Status status) mutable {
        ExtentTable& table = self->memory->table;
        if (status.ok()) {
          auto found = table.find(extent);
          if (found) return done(*found);
          status = object_lost("its memory was freed while it came back from disk");
        }
        table.unpin(extent, client);  // the client may be gone, and its pins with it
        self->memory->changed();
        done(status);
      });
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::Pin& pin) {
  pin_resident(pin.extent, client_of(channel), room_deadline(pin.wait_ms),
               [channel, request = without_content(message)](Result<Extent> extent) {
                 answer(channel, request,
                        extent.ok() ? object_wire::encode_reply(*extent)
                                    : object_wire::encode_failure(extent.status()));
               });
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message&,
                            const object_wire::Unpin& unpin) {
  Client client = client_of(channel);
  for (std::uint64_t extent : unpin.extents) {
    if (!memory->table.unpin(extent, client))
      LOG(warn, "object store: {} unpinned extent {} too often", channel->describe_peer(), extent);
  }
  memory->changed();
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::Fetch& fetch) {
  auto done = [self = shared_from_this(), channel, wait_ms = fetch.wait_ms,
               request = without_content(message)](Result<ObjectLocation> location) mutable {
    if (!location.ok())
      return answer(channel, request, object_wire::encode_failure(location.status()));
    if (channel->closed()) return;
    // Of the store's own it may be on disk, and come back to another place.
    self->pin_resident(
        location->extent, self->client_of(channel), self->room_deadline(wait_ms),
        [channel, request = std::move(request), at = *location](Result<Extent> extent) mutable {
          if (!extent.ok())
            return answer(channel, request, object_wire::encode_failure(extent.status()));
          if (extent->home != extent->range.begin)
            at.offset = at.offset - extent->home + extent->range.begin;
          answer(channel, request, object_wire::encode_reply(at));
        });
  };
  fetch_moved(fetch.location, room_deadline(fetch.wait_ms), std::move(done));
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::Read& read) {
  if (!is_here(read.location)) {
    // A copy, maybe still on its way: the part goes on when it has come.
    auto pass_on = [self = shared_from_this(), channel, read,
                    request = without_content(message)](Result<ObjectLocation> copy) {
      if (!copy.ok()) return answer(channel, request, object_wire::encode_failure(copy.status()));
      self->send_bytes(channel, request, read, copy->extent,
                       {self->memory->segment->readable() + copy->offset, copy->size});
    };
    return fetcher->when_here(read.location, {read.from, read.length}, std::move(pass_on));
  }
  if (memory->table.find(read.location.extent)) {
    memory->table.mark_shared(read.location.extent);
    sources.add_reader(read.location.extent, read.location.id, channel);
  }
  auto send = [self = shared_from_this(), channel, read,
               request = without_content(message)](Result<Extent> extent) {
    if (!extent.ok()) return answer(channel, request, object_wire::encode_failure(extent.status()));
    self->send_part(channel, request, read, *extent);
    CHECK(self->memory->table.unpin(extent->id, object_detail::kStoreItself));
  };
  pin_resident(read.location.extent, object_detail::kStoreItself,
               deadline_after(options.chunk_timeout), std::move(send));
}

void ObjectStore::State::send_part(const std::shared_ptr<Channel>& channel, const Message& request,
                                   const object_wire::Read& read, const Extent& extent) {
  ObjectLocation here = read.location;
  here.offset = here.offset - extent.home + extent.range.begin;
  auto bytes = memory->segment->find(here, extent.range.begin, extent.range.end());
  if (!bytes.ok()) return answer(channel, request, object_wire::encode_failure(bytes.status()));
  send_bytes(channel, request, read, extent.id, *bytes);
}

void ObjectStore::State::send_bytes(const std::shared_ptr<Channel>& channel, const Message& request,
                                    const object_wire::Read& read, std::uint64_t extent,
                                    std::span<const std::byte> object) {
  if (read.from > object.size() || read.length > object.size() - read.from ||
      read.length > kReadBytesMax) {
    return answer(channel, request,
                  object_wire::encode_failure(invalid_argument(
                      "the asked range lies outside of the object, or is longer than " +
                      std::to_string(kReadBytesMax) + " bytes")));
  }
  sent_bytes += read.length;
  answer(channel, request, object_wire::encode_reply(object_wire::Data{}),
         Buffer(object.subspan(read.from, read.length), memory->hold(extent)));
}

// Each is asked for all of it: what they have in excess stays where it is, only that its holder
// asks before it reads it.
void ObjectStore::State::ask_holders(std::uint64_t bytes, UniqueFunction<void(bool)> done) {
  struct Asking {
    UniqueFunction<void(bool)> done;
    std::size_t outstanding = 1;
    bool any = false;
    void end() {
      if (--outstanding == 0) done(any);
    }
  };
  auto asking = std::make_shared<Asking>();
  asking->done = std::move(done);
  const auto holders = memory->table.holders();
  for (const auto& [serial, connected] : clients) {
    auto channel = connected.channel.lock();
    if (!channel || channel->closed() ||
        std::find(holders.begin(), holders.end(), connected.client) == holders.end())
      continue;
    ++asking->outstanding;
    Message request;
    request.kind = FrameKind::kObject;
    request.meta = object_wire::encode_request(object_wire::Surrender{bytes});
    channel->request(
        std::move(request), deadline_after(kSurrenderTimeout),
        [self = shared_from_this(), client = connected.client, asking](Result<Message> message) {
          auto reply = message.ok() ? object_wire::decode_reply(message->meta) : message.status();
          auto* named = reply.ok() ? std::get_if<object_wire::Extents>(&*reply) : nullptr;
          for (std::uint64_t extent : named ? named->extents : std::vector<std::uint64_t>{}) {
            asking->any = self->memory->table.surrender(extent, client) || asking->any;
          }
          asking->end();
        });
  }
  memory->loop.post([asking] { asking->end(); });
}

void ObjectStore::State::wire(std::unique_ptr<SpillFolder> folder) {
  auto weak = weak_from_this();
  spiller = std::make_shared<Spiller>(memory, std::move(folder), options.spill,
                                      [weak](std::uint64_t bytes, UniqueFunction<void(bool)> done) {
                                        if (auto self = weak.lock())
                                          self->ask_holders(bytes, std::move(done));
                                      });
  memory->evict_copy = [weak] {
    auto self = weak.lock();
    return self && self->fetcher->drop_oldest();
  };
  memory->full = [weak](std::uint64_t bytes) {
    auto self = weak.lock();
    return self ? self->full(bytes) : std::string("the object store was stopped");
  };
  memory->balance = [weak] {
    if (auto self = weak.lock()) self->spiller->balance();
  };
  memory->on_ended_on_disk = [weak](std::uint64_t extent) {
    if (auto self = weak.lock()) self->spiller->forget(extent);
  };
  memory->on_ended_shared = [weak](std::uint64_t extent) {
    if (auto self = weak.lock()) self->send_ended(extent);
  };
  peers->on_ended = [weak](const std::vector<ObjectId>& objects) {
    if (auto self = weak.lock()) self->fetcher->ended(objects);
  };
  peers->on_first_lost = [weak](const std::string& endpoint) {
    auto self = weak.lock();
    if (!self) return;
    self->renew_borrows(endpoint, 0);
    self->fetcher->connection_lost(endpoint);
  };
}

void ObjectStore::State::stop() {
  fetcher->stop();
  peers->stop();
  spiller->stop();
  memory->line->stop();
}

ObjectStore::ObjectStore(std::shared_ptr<State> state) : state_(std::move(state)) {}

ObjectStore::~ObjectStore() {
  EventLoop& loop = state_->memory->loop;
  if (loop.in_loop()) {
    state_->stop();
  } else {
    loop.post([state = state_] { state->stop(); });
  }
}

Result<std::unique_ptr<ObjectStore>> ObjectStore::create(EventLoop& loop,
                                                         ObjectStoreOptions options) {
  std::uint64_t capacity = options.capacity_bytes;
  if (capacity == 0) {
    capacity = std::max(
        kCapacityMin,
        static_cast<std::uint64_t>(kMemoryShare * static_cast<double>(memory_limit_bytes())));
  }
  capacity = round_to_pages(capacity);
  if (options.slab_bytes < (64 << 10) || options.slab_bytes % kPageBytes != 0 ||
      options.slab_bytes > capacity) {
    return invalid_argument("object store: a slab of " + std::to_string(options.slab_bytes) +
                            " bytes: expected whole pages, from 64 KiB to the capacity of " +
                            std::to_string(capacity) + " bytes");
  }
  if (options.chunk_bytes == 0 || options.chunks_in_flight_max < 1 || options.streams < 1)
    return invalid_argument("object store: fetching needs chunks");
  if (!(options.spill.low_water > 0 && options.spill.low_water <= options.spill.high_water &&
        options.spill.high_water <= 1)) {
    return invalid_argument("object store: expected 0 < low-water mark <= high-water mark <= 1");
  }
  std::unique_ptr<SpillFolder> folder;
  if (!options.spill.folder.empty()) {
    auto opened = SpillFolder::open(options.spill.folder);
    if (!opened.ok()) return opened.status().with_context("object store");
    folder = std::move(*opened);
    if (options.spill.limit_bytes == 0) options.spill.limit_bytes = folder->free_bytes() / 2;
  }
  auto segment = Segment::create(capacity);
  if (!segment.ok()) return segment.status();
  auto state = std::make_shared<State>(loop, std::move(options), std::move(*segment));
  state->wire(std::move(folder));
  return std::unique_ptr<ObjectStore>(new ObjectStore(std::move(state)));
}

bool ObjectStore::handle(const std::shared_ptr<Channel>& channel, Message& message) {
  if (message.kind != FrameKind::kObject) return false;
  auto request = object_wire::decode_request(message.meta);
  if (!request.ok()) {
    LOG(warn, "object store: {}: {}", channel->describe_peer(), request.status().message());
    State::answer(channel, message, object_wire::encode_failure(request.status()));
    return true;
  }
  std::visit([&](const auto& kind) { state_->on(channel, message, kind); }, *request);
  return true;
}

void ObjectStore::attach(const std::shared_ptr<Channel>& channel) {
  (void)state_->client_of(channel);
}

void ObjectStore::detach(const Channel& channel) { state_->client_ended(channel); }

void ObjectStore::set_endpoint(std::string endpoint) {
  state_->memory->loop.post([state = state_, endpoint = std::move(endpoint)] {
    state->options.endpoint = state->memory->endpoint = endpoint;
  });
}

void ObjectStore::adopt(const ObjectLocation& location,
                        UniqueFunction<void(Result<ObjectLocation>)> done) {
  state_->adopt(location, std::move(done));
}

void ObjectStore::drop(const ObjectLocation& location) { state_->drop(location); }

void ObjectStore::keep_what_ends() { state_->keeps_what_ends = true; }

void ObjectStore::take_over_from(NodeId node, std::chrono::milliseconds timeout,
                                 UniqueFunction<void(std::uint64_t)> done) {
  state_->take_over_from(node, timeout, std::move(done));
}

std::optional<ObjectLocation> ObjectStore::find_adopted(ObjectId object) const {
  const ObjectLocation* found = state_->adopted_as(object);
  return found ? std::optional(*found) : std::nullopt;
}

void ObjectStore::list(std::chrono::milliseconds timeout, UniqueFunction<void(StoreList)> done) {
  state_->list(timeout, std::move(done));
}

ObjectStoreStats ObjectStore::stats() const { return state_->stats(); }

std::uint64_t ObjectStore::give_back_free_memory() { return state_->memory->give_back_free(); }

ObjectStoreStats ObjectStore::State::stats() const {
  const ExtentTable& table = memory->table;
  ObjectStoreStats stats;
  stats.capacity_bytes = table.capacity_bytes();
  stats.leased_bytes = table.leased_bytes() - fetcher->replica_bytes();
  stats.orphaned_bytes = table.orphaned_bytes();
  stats.adopted_bytes = table.kept_bytes();
  stats.replica_bytes = fetcher->replica_bytes();
  stats.retained_bytes = table.retained_bytes();
  stats.spilled_bytes = table.vacated_bytes();
  stats.spills = spiller->spills();
  stats.restores = spiller->restores();
  stats.sent_bytes = sent_bytes;
  stats.fetched_bytes = fetcher->fetched_bytes();
  stats.wanted_bytes = memory->line->wanted_bytes();
  stats.pins = table.pins();
  stats.borrows = borrows.size();
  return stats;
}

}  // namespace runtime
