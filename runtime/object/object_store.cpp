#include "runtime/object/object_store.h"

#include <algorithm>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/core/memory_limit.h"
#include "runtime/object/spiller.h"
#include "runtime/object/store_state.h"

namespace runtime {

using object_detail::Fetcher;
using object_detail::SpillFolder;
using object_detail::Spiller;
using object_detail::StoreMemory;

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

struct ObjectStore::State : std::enable_shared_from_this<ObjectStore::State> {
  State(EventLoop& loop, ObjectStoreOptions options_in, std::unique_ptr<Segment> segment)
      : options(std::move(options_in)),
        memory(std::make_shared<StoreMemory>(loop, std::move(segment), options.retained_bytes_max)),
        fetcher(std::make_shared<Fetcher>(memory, options)) {}

  void wire(std::unique_ptr<SpillFolder> folder);
  void stop();

  using Client = ExtentTable::Client;

  struct Connected {
    Client client;
    std::weak_ptr<Channel> channel;
  };

  Client client_of(const std::shared_ptr<Channel>& channel) {
    auto [known, fresh] = clients.try_emplace(channel.get(), Connected{next_client, channel});
    if (fresh) ++next_client;
    return known->second.client;
  }

  Deadline room_deadline(std::uint64_t wait_ms) const {
    return deadline_after(std::min(options.wait_max, std::chrono::milliseconds(std::min<std::uint64_t>(wait_ms, 1ull << 40))));
  }
  std::string full(std::uint64_t bytes) const;
  void ask_holders(std::uint64_t bytes, UniqueFunction<void(bool)> done);
  /// Calls `done` with the pinned extent once its bytes are in memory; the pin is the client's (or the store's).
  void pin_resident(std::uint64_t extent, Client client, Deadline deadline, UniqueFunction<void(Result<Extent>)> done);
  void send_part(const std::shared_ptr<Channel>& channel, const Message& request, const object_wire::Read& read, const Extent& extent);

  static void answer(const std::shared_ptr<Channel>& channel, const Message& request, Buffer meta, Payload payload = {}) {
    if (request.id == 0) return;
    // A failure means that the connection is gone, and detach() follows.
    (void)channel->send(reply_to(request, std::move(meta), std::move(payload)));
  }

  void on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Open&);
  void on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Lease& lease);
  void on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::GiveBack& back);
  void on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Pin& pin);
  void on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Unpin& unpin);
  void on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Fetch& fetch);
  void on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Read& read);
  void on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Surrender&);

  ObjectStoreOptions options;
  const std::shared_ptr<StoreMemory> memory;
  const std::shared_ptr<Fetcher> fetcher;
  std::shared_ptr<Spiller> spiller;
  std::unordered_map<const Channel*, Connected> clients;
  Client next_client = object_detail::kStoreItself + 1;
};

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Open&) {
  auto fd = memory->segment->duplicate();
  if (!fd.ok()) return answer(channel, message, object_wire::encode_failure(fd.status()));
  if (!channel->is_unix()) {
    return answer(channel, message,
                  object_wire::encode_failure(invalid_argument("shared memory is for processes on this machine; ask your own node")));
  }
  object_wire::StoreInfo info{options.credentials.node, options.endpoint, 0, memory->segment->bytes(), options.slab_bytes};
  Message reply = reply_to(message, object_wire::encode_reply(info));
  reply.fds.push_back(std::move(*fd));
  (void)channel->send(std::move(reply));
}

std::string ObjectStore::State::full(std::uint64_t bytes) const {
  const ExtentTable& table = memory->table;
  return "object store of node " + options.credentials.node.short_hex() + " is full: " + std::to_string(bytes) + " bytes asked, " +
         std::to_string(table.capacity_bytes()) + " in all, " + std::to_string(table.leased_bytes()) + " held by processes, " +
         std::to_string(table.orphaned_bytes()) + " kept for readers" + spiller->describe() + "; drop references or give the node more";
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Lease& lease) {
  Client client = client_of(channel);
  auto attempt = [self = shared_from_this(), channel, client, bytes = lease.bytes, request = without_content(message)] {
    auto extent = self->memory->lease(bytes, client);
    if (extent) answer(channel, request, object_wire::encode_reply(*extent));
    return extent.has_value();
  };
  auto give_up = [self = shared_from_this(), channel, bytes = lease.bytes, request = without_content(message)] {
    answer(channel, request, object_wire::encode_failure(resource_exhausted(self->full(bytes))));
  };
  // What can never fit need not wait.
  Deadline deadline = lease.bytes > 0 && lease.bytes <= memory->table.capacity_bytes() ? room_deadline(lease.wait_ms) : Deadline::min();
  memory->line->wait(lease.bytes, client, deadline, std::move(attempt), std::move(give_up));
  memory->balance();
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message&, const object_wire::GiveBack& back) {
  Client client = client_of(channel);
  for (std::uint64_t extent : back.extents) {
    if (!memory->table.give_back(extent, client)) LOG(warn, "object store: {} gave back extent {} which it does not hold", channel->describe_peer(), extent);
  }
  memory->changed();
}

void ObjectStore::State::pin_resident(std::uint64_t extent, Client client, Deadline deadline, UniqueFunction<void(Result<Extent>)> done) {
  auto pinned = memory->table.pin(extent, client);
  if (!pinned) {
    return done(object_lost("its memory on node " + options.credentials.node.short_hex() + " is gone: the owner freed it or ended"));
  }
  if (memory->table.is_resident(extent)) return done(*pinned);
  spiller->restore(extent, deadline, [self = shared_from_this(), extent, client, done = std::move(done)](Status status) mutable {
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

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Pin& pin) {
  pin_resident(pin.extent, client_of(channel), room_deadline(pin.wait_ms), [channel, request = without_content(message)](Result<Extent> extent) {
    answer(channel, request, extent.ok() ? object_wire::encode_reply(*extent) : object_wire::encode_failure(extent.status()));
  });
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message&, const object_wire::Unpin& unpin) {
  Client client = client_of(channel);
  for (std::uint64_t extent : unpin.extents) {
    if (!memory->table.unpin(extent, client)) LOG(warn, "object store: {} unpinned extent {} too often", channel->describe_peer(), extent);
  }
  memory->changed();
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Fetch& fetch) {
  auto done = [self = shared_from_this(), channel, request = without_content(message)](Result<ObjectLocation> location) {
    if (!location.ok()) return answer(channel, request, object_wire::encode_failure(location.status()));
    if (channel->closed()) return;
    CHECK(self->memory->table.pin(location->extent, self->client_of(channel)));
    answer(channel, request, object_wire::encode_reply(*location));
  };
  fetcher->fetch(fetch.location, room_deadline(fetch.wait_ms), std::move(done));
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Read& read) {
  if (read.location.node != options.credentials.node || !memory->table.find(read.location.extent)) {
    return answer(channel, message,
                  object_wire::encode_failure(object_lost("object " + read.location.id.short_hex() + ": node " + options.credentials.node.short_hex() +
                                                          " does not have it (any more)")));
  }
  auto send = [self = shared_from_this(), channel, read, request = without_content(message)](Result<Extent> extent) {
    if (!extent.ok()) return answer(channel, request, object_wire::encode_failure(extent.status().with_context("object " + read.location.id.short_hex())));
    self->send_part(channel, request, read, *extent);
    CHECK(self->memory->table.unpin(extent->id, object_detail::kStoreItself));
  };
  pin_resident(read.location.extent, object_detail::kStoreItself, deadline_after(options.chunk_timeout), std::move(send));
}

void ObjectStore::State::send_part(const std::shared_ptr<Channel>& channel, const Message& request, const object_wire::Read& read, const Extent& extent) {
  auto refuse = [&](Status why) { answer(channel, request, object_wire::encode_failure(why)); };
  ObjectLocation here = read.location;
  here.offset = here.offset - extent.home + extent.range.begin;
  auto bytes = memory->segment->find(here, extent.range.begin, extent.range.end());
  if (!bytes.ok()) return refuse(bytes.status());
  if (read.from > bytes->size() || read.length > bytes->size() - read.from || read.length > kReadBytesMax) {
    return refuse(invalid_argument("object " + read.location.id.short_hex() + ": the asked range lies outside, or is longer than " + std::to_string(kReadBytesMax) + " bytes"));
  }
  answer(channel, request, object_wire::encode_reply(object_wire::Data{}),
         Buffer(bytes->subspan(read.from, read.length), memory->hold(extent.id)));
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Surrender&) {
  answer(channel, message, object_wire::encode_failure(invalid_argument("a store surrenders nothing")));
}

// Each is asked for all of it: what they have in excess stays where it is, only that its holder asks before it reads it.
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
  for (const auto& [address, connected] : clients) {
    auto channel = connected.channel.lock();
    if (!channel || channel->closed() || std::find(holders.begin(), holders.end(), connected.client) == holders.end()) continue;
    ++asking->outstanding;
    Message request;
    request.kind = FrameKind::kObject;
    request.meta = object_wire::encode_request(object_wire::Surrender{bytes});
    channel->request(std::move(request), deadline_after(kSurrenderTimeout),
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
  spiller = std::make_shared<Spiller>(memory, std::move(folder), options.spill, [weak](std::uint64_t bytes, UniqueFunction<void(bool)> done) {
    if (auto self = weak.lock()) self->ask_holders(bytes, std::move(done));
  });
  memory->evict_copy = [weak] {
    auto self = weak.lock();
    return self && self->fetcher->drop_oldest();
  };
  memory->balance = [weak] {
    if (auto self = weak.lock()) self->spiller->balance();
  };
  memory->on_ended_on_disk = [weak](std::uint64_t extent) {
    if (auto self = weak.lock()) self->spiller->forget(extent);
  };
}

void ObjectStore::State::stop() {
  fetcher->stop();
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

Result<std::unique_ptr<ObjectStore>> ObjectStore::create(EventLoop& loop, ObjectStoreOptions options) {
  std::uint64_t capacity = options.capacity_bytes;
  if (capacity == 0) {
    capacity = std::max(kCapacityMin, static_cast<std::uint64_t>(kMemoryShare * static_cast<double>(memory_limit_bytes())));
  }
  capacity = round_to_pages(capacity);
  if (options.slab_bytes < (64 << 10) || options.slab_bytes % kPageBytes != 0 || options.slab_bytes > capacity) {
    return invalid_argument("object store: a slab of " + std::to_string(options.slab_bytes) + " bytes: expected whole pages, from 64 KiB to the capacity of " +
                            std::to_string(capacity) + " bytes");
  }
  if (options.chunk_bytes == 0 || options.chunks_in_flight_max < 1 || options.streams < 1) return invalid_argument("object store: fetching needs chunks");
  if (!(options.spill.low_water > 0 && options.spill.low_water <= options.spill.high_water && options.spill.high_water <= 1)) {
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

void ObjectStore::detach(const Channel& channel) {
  auto client = state_->clients.extract(&channel);
  if (client.empty()) return;
  state_->memory->line->drop(client.mapped().client);
  state_->memory->table.drop(client.mapped().client);
  state_->memory->changed();
}

void ObjectStore::set_endpoint(std::string endpoint) {
  state_->memory->loop.post([state = state_, endpoint = std::move(endpoint)] { state->options.endpoint = endpoint; });
}

ObjectStoreStats ObjectStore::stats() const {
  const ExtentTable& table = state_->memory->table;
  ObjectStoreStats stats;
  stats.capacity_bytes = table.capacity_bytes();
  stats.leased_bytes = table.leased_bytes() - state_->fetcher->replica_bytes();
  stats.orphaned_bytes = table.orphaned_bytes();
  stats.replica_bytes = state_->fetcher->replica_bytes();
  stats.retained_bytes = table.retained_bytes();
  stats.spilled_bytes = table.vacated_bytes();
  stats.spills = state_->spiller->spills();
  stats.restores = state_->spiller->restores();
  stats.pins = table.pins();
  return stats;
}

}  // namespace runtime
