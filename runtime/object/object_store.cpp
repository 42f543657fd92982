#include "runtime/object/object_store.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/object/store_state.h"

namespace runtime {

using object_detail::Fetcher;
using object_detail::StoreMemory;

namespace {

// More in one answer than any node asks for.
constexpr std::uint64_t kReadBytesMax = 64 << 20;
constexpr double kMemoryShare = 0.3;
// With less a store is of no use.
constexpr std::uint64_t kCapacityMin = 64ull << 20;

std::uint64_t machine_bytes() {
  std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  // A container's limit counts like the machine's memory. "max" does not parse and stays out.
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::uint64_t limit = 0;
    if (std::ifstream(file) >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

}  // namespace

struct ObjectStore::State : std::enable_shared_from_this<ObjectStore::State> {
  State(EventLoop& loop, ObjectStoreOptions options_in, std::unique_ptr<Segment> segment)
      : options(std::move(options_in)),
        memory(std::make_shared<StoreMemory>(loop, std::move(segment), options.retained_bytes_max)),
        fetcher(std::make_shared<Fetcher>(memory, options)) {}

  using Client = ExtentTable::Client;

  Client client_of(const Channel& channel) {
    auto [client, fresh] = clients.try_emplace(&channel, next_client);
    if (fresh) ++next_client;
    return client->second;
  }

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

  ObjectStoreOptions options;
  const std::shared_ptr<StoreMemory> memory;
  const std::shared_ptr<Fetcher> fetcher;
  std::unordered_map<const Channel*, Client> clients;
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

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Lease& lease) {
  Client client = client_of(*channel);
  std::optional<Extent> extent = memory->lease(lease.bytes, client);
  while (!extent && fetcher->drop_oldest()) extent = memory->lease(lease.bytes, client);
  if (!extent) {
    const ExtentTable& table = memory->table;
    return answer(channel, message,
                  object_wire::encode_failure(resource_exhausted(
                      "object store of node " + options.credentials.node.short_hex() + " is full: " + std::to_string(lease.bytes) +
                      " bytes asked, " + std::to_string(table.capacity_bytes()) + " in all, " + std::to_string(table.leased_bytes()) +
                      " held by processes, " + std::to_string(table.orphaned_bytes()) + " kept for readers; drop references or give the node more")));
  }
  answer(channel, message, object_wire::encode_reply(*extent));
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message&, const object_wire::GiveBack& back) {
  Client client = client_of(*channel);
  for (std::uint64_t extent : back.extents) {
    if (!memory->table.give_back(extent, client)) LOG(warn, "object store: {} gave back extent {} which it does not hold", channel->describe_peer(), extent);
  }
  memory->trim();
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Pin& pin) {
  auto extent = memory->table.pin(pin.extent, client_of(*channel));
  answer(channel, message,
         extent ? object_wire::encode_reply(*extent)
                : object_wire::encode_failure(object_lost("its memory on node " + options.credentials.node.short_hex() +
                                                          " is gone: the owner freed it or ended")));
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message&, const object_wire::Unpin& unpin) {
  Client client = client_of(*channel);
  for (std::uint64_t extent : unpin.extents) {
    if (!memory->table.unpin(extent, client)) LOG(warn, "object store: {} unpinned extent {} too often", channel->describe_peer(), extent);
  }
  memory->trim();
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Fetch& fetch) {
  Message request;  // what the answer needs of it
  request.kind = message.kind;
  request.id = message.id;
  fetcher->fetch(fetch.location, [self = shared_from_this(), channel, request = std::move(request)](Result<ObjectLocation> location) {
    if (!location.ok()) return answer(channel, request, object_wire::encode_failure(location.status()));
    if (channel->closed()) return;
    CHECK(self->memory->table.pin(location->extent, self->client_of(*channel)));
    answer(channel, request, object_wire::encode_reply(*location));
  });
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message, const object_wire::Read& read) {
  auto refuse = [&](Status why) { answer(channel, message, object_wire::encode_failure(why)); };
  auto extent = memory->table.find(read.location.extent);
  if (read.location.node != options.credentials.node || !extent) {
    return refuse(object_lost("object " + read.location.id.short_hex() + ": node " + options.credentials.node.short_hex() + " does not have it (any more)"));
  }
  auto bytes = memory->segment->find(read.location, extent->range.begin, extent->range.end());
  if (!bytes.ok()) return refuse(bytes.status());
  if (read.from > bytes->size() || read.length > bytes->size() - read.from || read.length > kReadBytesMax) {
    return refuse(invalid_argument("object " + read.location.id.short_hex() + ": the asked range lies outside, or is longer than " + std::to_string(kReadBytesMax) + " bytes"));
  }
  answer(channel, message, object_wire::encode_reply(object_wire::Data{}),
         Buffer(bytes->subspan(read.from, read.length), memory->hold(extent->id)));
}

ObjectStore::ObjectStore(std::shared_ptr<State> state) : state_(std::move(state)) {}

ObjectStore::~ObjectStore() {
  EventLoop& loop = state_->memory->loop;
  if (loop.in_loop()) {
    state_->fetcher->stop();
  } else {
    loop.post([state = state_] { state->fetcher->stop(); });
  }
}

Result<std::unique_ptr<ObjectStore>> ObjectStore::create(EventLoop& loop, ObjectStoreOptions options) {
  std::uint64_t capacity = options.capacity_bytes;
  if (capacity == 0) {
    capacity = std::max(kCapacityMin, static_cast<std::uint64_t>(kMemoryShare * static_cast<double>(machine_bytes())));
  }
  capacity = round_to_pages(capacity);
  if (options.slab_bytes < (64 << 10) || options.slab_bytes % kPageBytes != 0 || options.slab_bytes > capacity) {
    return invalid_argument("object store: a slab of " + std::to_string(options.slab_bytes) + " bytes: expected whole pages, from 64 KiB to the capacity of " +
                            std::to_string(capacity) + " bytes");
  }
  if (options.chunk_bytes == 0 || options.chunks_in_flight_max < 1) return invalid_argument("object store: fetching needs chunks");
  auto segment = Segment::create(capacity);
  if (!segment.ok()) return segment.status();
  return std::unique_ptr<ObjectStore>(new ObjectStore(std::make_shared<State>(loop, std::move(options), std::move(*segment))));
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
  state_->memory->table.drop(client.mapped());
  state_->memory->trim();
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
  stats.pins = table.pins();
  return stats;
}

}  // namespace runtime
