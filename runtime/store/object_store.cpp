#include "runtime/store/object_store.h"

#include <algorithm>
#include <utility>

#include "runtime/core/log.h"
#include "runtime/core/memory_limit.h"
#include "runtime/store/adopted_objects.h"
#include "runtime/store/borrowers.h"
#include "runtime/store/ended_owners.h"
#include "runtime/store/fetcher.h"
#include "runtime/store/resident_pins.h"
#include "runtime/store/source_tree.h"
#include "runtime/store/spiller.h"
#include "runtime/store/store_clients.h"
#include "runtime/store/store_memory.h"

namespace runtime {

using object_detail::AdoptedObjects;
using object_detail::answer;
using object_detail::Borrowers;
using object_detail::EndedOwners;
using object_detail::Fetcher;
using object_detail::kStoreItself;
using object_detail::PeerLinks;
using object_detail::ResidentPins;
using object_detail::SourceTree;
using object_detail::Spiller;
using object_detail::SpillFolder;
using object_detail::StoreClients;
using object_detail::StoreMemory;
using object_detail::without_content;

namespace {

// More in one answer than any node asks for.
constexpr std::uint64_t kReadBytesMax = 64 << 20;
// A process answers at once, unless it hangs.
constexpr std::chrono::seconds kSurrenderTimeout{2};
constexpr double kMemoryShare = 0.3;
// With less a store is of no use.
constexpr std::uint64_t kCapacityMin = 64ull << 20;

}  // namespace

/// Serves the requests of processes and of other stores from its parts. On the event loop.
struct ObjectStore::State : std::enable_shared_from_this<ObjectStore::State> {
  using Client = StoreClients::Client;
  using ChannelPtr = std::shared_ptr<Channel>;

  State(EventLoop& loop, ObjectStoreOptions options_in, std::unique_ptr<Segment> segment)
      : options(std::move(options_in)),
        memory(std::make_shared<StoreMemory>(loop, std::move(segment), options)),
        peers(std::make_shared<PeerLinks>(loop, options.credentials)),
        fetcher(std::make_shared<Fetcher>(memory, peers, options)),
        clients(std::make_shared<StoreClients>()),
        ended(std::make_shared<EndedOwners>(options.credentials.node, options.how_ended)),
        borrowers(
            std::make_shared<Borrowers>(memory, peers, options.credentials.node, clients, ended)) {
    memory->endpoint = options.endpoint;
  }

  void wire(std::unique_ptr<SpillFolder> folder);
  void wire_memory();
  void stop();

  Deadline room_deadline(std::uint64_t wait_ms) const {
    return deadline_after(std::min(
        options.wait_max, std::chrono::milliseconds(std::min<std::uint64_t>(wait_ms, 1ull << 40))));
  }
  bool is_here(const ObjectLocation& location) const {
    return location.node == options.credentials.node;
  }
  std::string full(std::uint64_t bytes) const;
  void ask_holders(std::uint64_t bytes, UniqueFunction<void(bool)> done);
  void send_part(const ChannelPtr& channel, const Message& request, const object_wire::Read& read,
                 const Extent& extent);
  void send_bytes(const ChannelPtr& channel, const Message& request, const object_wire::Read& read,
                  std::uint64_t extent, std::span<const std::byte> object);

  void on(const ChannelPtr& channel, const Message& message, const object_wire::Open&);
  void on(const ChannelPtr& channel, const Message& message, const object_wire::Lease& lease);
  void on(const ChannelPtr& channel, const Message&, const object_wire::GiveBack& back);
  void on(const ChannelPtr& channel, const Message& message, const object_wire::Pin& pin);
  void on(const ChannelPtr& channel, const Message&, const object_wire::Unpin& unpin);
  void on(const ChannelPtr& channel, const Message& message, const object_wire::Fetch& fetch);
  void on(const ChannelPtr& channel, const Message& message, const object_wire::Read& read);
  void on(const ChannelPtr& channel, const Message& message, const object_wire::Keep& keep) {
    borrowers->keep(channel, message, keep);
  }
  void on(const ChannelPtr& channel, const Message&, const object_wire::Release& release) {
    borrowers->release(channel, release);
  }
  void on(const ChannelPtr& channel, const Message& message, const object_wire::Source& source);
  void on(const ChannelPtr& channel, const Message& message, const object_wire::Remake& remake);
  void on(const ChannelPtr& channel, const Message& message, const object_wire::TakeOver& take);
  /// What a store asks of processes, or of stores that it has connected to, is not asked of it.
  template <class Other>
  void on(const ChannelPtr& channel, const Message& message, const Other&) {
    answer(channel, message,
           object_wire::encode_failure(invalid_argument("a node's store does not serve this")));
  }

  void client_ended(const Channel& channel);
  /// Asks the processes of this node; the first that makes it again answers.
  void have_made_again(const object_wire::Remake& remake,
                       UniqueFunction<void(Result<ObjectLocation>)> done);
  void send_ended(std::uint64_t extent);
  void take_over_from(NodeId node, std::chrono::milliseconds timeout,
                      UniqueFunction<void(std::uint64_t)> done);
  void list(std::chrono::milliseconds timeout, UniqueFunction<void(StoreList)> done);
  void list_own(StoreList& list) const;
  ObjectStoreStats stats() const;

  ObjectStoreOptions options;
  const std::shared_ptr<StoreMemory> memory;
  const std::shared_ptr<PeerLinks> peers;
  const std::shared_ptr<Fetcher> fetcher;
  const std::shared_ptr<StoreClients> clients;
  const std::shared_ptr<EndedOwners> ended;
  const std::shared_ptr<Borrowers> borrowers;
  SourceTree sources;
  std::uint64_t sent_bytes = 0;
  bool keeps_what_ends = false;  // the node is about to leave
  // Set by wire().
  std::shared_ptr<Spiller> spiller;
  std::shared_ptr<ResidentPins> pins;
  std::shared_ptr<AdoptedObjects> adopted;
};

void ObjectStore::State::on(const ChannelPtr& channel, const Message& message,
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

void ObjectStore::State::on(const ChannelPtr& channel, const Message& message,
                            const object_wire::Lease& lease) {
  Client client = clients->number_of(channel);
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

void ObjectStore::State::on(const ChannelPtr& channel, const Message&,
                            const object_wire::GiveBack& back) {
  Client client = clients->number_of(channel);
  for (std::uint64_t extent : back.extents) {
    if (!memory->table.give_back(extent, client))
      LOG(warn, "object store: {} gave back extent {} which it does not hold",
          channel->describe_peer(), extent);
  }
  memory->changed();
}

void ObjectStore::State::on(const ChannelPtr& channel, const Message& message,
                            const object_wire::Pin& pin) {
  pins->pin(pin.extent, clients->number_of(channel), room_deadline(pin.wait_ms),
            [channel, request = without_content(message)](Result<Extent> extent) {
              answer(channel, request,
                     extent.ok() ? object_wire::encode_reply(*extent)
                                 : object_wire::encode_failure(extent.status()));
            });
}

void ObjectStore::State::on(const ChannelPtr& channel, const Message&,
                            const object_wire::Unpin& unpin) {
  Client client = clients->number_of(channel);
  for (std::uint64_t extent : unpin.extents) {
    if (!memory->table.unpin(extent, client))
      LOG(warn, "object store: {} unpinned extent {} too often", channel->describe_peer(), extent);
  }
  memory->changed();
}

void ObjectStore::State::on(const ChannelPtr& channel, const Message& message,
                            const object_wire::Fetch& fetch) {
  auto done = [self = shared_from_this(), channel, wait_ms = fetch.wait_ms,
               request = without_content(message)](Result<ObjectLocation> location) mutable {
    if (!location.ok())
      return answer(channel, request, object_wire::encode_failure(location.status()));
    if (channel->closed()) return;
    // Of the store's own it may be on disk, and come back to another place.
    self->pins->pin(
        location->extent, self->clients->number_of(channel), self->room_deadline(wait_ms),
        [channel, request = std::move(request), at = *location](Result<Extent> extent) mutable {
          if (!extent.ok())
            return answer(channel, request, object_wire::encode_failure(extent.status()));
          if (extent->home != extent->range.begin)
            at.offset = at.offset - extent->home + extent->range.begin;
          answer(channel, request, object_wire::encode_reply(at));
        });
  };
  adopted->fetch_moved(fetch.location, room_deadline(fetch.wait_ms), std::move(done));
}

void ObjectStore::State::on(const ChannelPtr& channel, const Message& message,
                            const object_wire::Read& read) {
  if (!is_here(read.location)) {
    // A copy, maybe still in transit: the part is sent when it has come.
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
    CHECK(self->memory->table.unpin(extent->id, kStoreItself));
  };
  pins->pin(read.location.extent, kStoreItself, deadline_after(options.chunk_timeout),
            std::move(send));
}

void ObjectStore::State::send_part(const ChannelPtr& channel, const Message& request,
                                   const object_wire::Read& read, const Extent& extent) {
  ObjectLocation here = read.location;
  here.offset = here.offset - extent.home + extent.range.begin;
  auto bytes = memory->segment->find(here, extent.range.begin, extent.range.end());
  if (!bytes.ok()) return answer(channel, request, object_wire::encode_failure(bytes.status()));
  send_bytes(channel, request, read, extent.id, *bytes);
}

void ObjectStore::State::send_bytes(const ChannelPtr& channel, const Message& request,
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
  for (const auto& [client, channel] : clients->open()) {
    if (std::find(holders.begin(), holders.end(), client) == holders.end()) continue;
    ++asking->outstanding;
    channel->request(
        object_wire::request_message(object_wire::Surrender{bytes}),
        deadline_after(kSurrenderTimeout),
        [self = shared_from_this(), holder = client, asking](Result<Message> message) {
          auto reply = message.ok() ? object_wire::decode_reply(message->meta) : message.status();
          auto* named = reply.ok() ? std::get_if<object_wire::Extents>(&*reply) : nullptr;
          for (std::uint64_t extent : named ? named->extents : std::vector<std::uint64_t>{}) {
            asking->any = self->memory->table.surrender(extent, holder) || asking->any;
          }
          asking->end();
        });
  }
  memory->loop.post([asking] { asking->end(); });
}

void ObjectStore::State::client_ended(const Channel& channel) {
  const std::optional<Client> client = clients->remove(channel);
  if (!client) return;
  const std::vector<std::uint64_t> leases = memory->table.leases_of(*client);
  ended->note(leases, channel.peer());
  memory->line->drop(*client);
  if (keeps_what_ends) {
    for (std::uint64_t extent : leases) CHECK(memory->table.keep(extent));
  }
  memory->table.drop(*client);
  borrowers->client_ended(*client);
  memory->changed();
}

void ObjectStore::State::send_ended(std::uint64_t extent) {
  SourceTree::Shared shared = sources.take(extent);
  if (shared.objects.empty()) return;
  const Buffer meta = object_wire::encode_request(object_wire::Ended{std::move(shared.objects)});
  for (const auto& reader : shared.readers) {
    (void)reader->send(object_wire::request_message(meta),
                       Flush::kSoon);  // not sent: its copies go when it needs the room
  }
}

void ObjectStore::State::on(const ChannelPtr& channel, const Message& message,
                            const object_wire::Remake& remake) {
  Message request = without_content(message);
  if (remake.keeper == memory->endpoint) {
    return have_made_again(remake,
                           [channel, request = std::move(request)](Result<ObjectLocation> found) {
                             answer(channel, request,
                                    found.ok() ? object_wire::encode_reply(*found)
                                               : object_wire::encode_failure(found.status()));
                           });
  }
  if (channel->peer().role == Role::kNode)
    return answer(channel, request,
                  object_wire::encode_failure(invalid_argument("the keeper is another node")));
  peers->ask(remake.keeper, remake, deadline_after(options.wait_max),
             [channel, request = std::move(request)](Result<object_wire::Reply> reply) {
               answer(channel, request,
                      reply.ok() ? object_wire::encode_reply(*reply)
                                 : object_wire::encode_failure(reply.status()));
             });
}

void ObjectStore::State::have_made_again(const object_wire::Remake& remake,
                                         UniqueFunction<void(Result<ObjectLocation>)> done) {
  struct Asking {
    UniqueFunction<void(Result<ObjectLocation>)> done;  // null: the first has answered
    Status failure;
  };
  auto asking = std::make_shared<Asking>();
  asking->done = std::move(done);
  asking->failure =
      object_lost("the process that had its task run, on node " +
                  options.credentials.node.short_hex() + ", has ended or refers to it no more");
  clients->ask_processes(
      remake, options.wait_max,
      [asking](const PeerInfo&, Result<object_wire::Reply> reply, bool gone) {
        auto* found = reply.ok() ? std::get_if<ObjectLocation>(&*reply) : nullptr;
        if (found != nullptr && asking->done)
          return std::exchange(asking->done, nullptr)(std::move(*found));
        // One that has ended could not have made it.
        if (!reply.ok() && !gone && reply.status().code() != ErrorCode::kNotFound)
          asking->failure = reply.status();
      },
      [asking] {
        if (asking->done) asking->done(asking->failure);
      });
}

void ObjectStore::State::on(const ChannelPtr& channel, const Message& message,
                            const object_wire::Source& source) {
  if (!is_here(source.location))
    return answer(channel, message,
                  object_wire::encode_failure(invalid_argument("the object is of another node")));
  if (!memory->table.find(source.location.extent))
    return answer(channel, message,
                  object_wire::encode_failure(ended->lost(source.location.extent)));
  memory->table.mark_shared(source.location.extent);
  sources.add_reader(source.location.extent, source.location.id, channel);
  answer(channel, message,
         object_wire::encode_reply(object_wire::SourceFound{sources.assign(
             source.location.extent, source.location.id, source.endpoint, source.failed)}));
}

void ObjectStore::State::on(const ChannelPtr& channel, const Message& message,
                            const object_wire::TakeOver& take) {
  Message request = without_content(message);
  if (channel->peer().role == Role::kNode) {
    return answer(channel, request,
                  object_wire::encode_failure(invalid_argument(
                      "a store takes objects over for the processes of its own node")));
  }
  auto take_over = [self = shared_from_this(), channel,
                    request = std::move(request)](Result<ObjectLocation> kept) {
    if (!kept.ok()) return answer(channel, request, object_wire::encode_failure(kept.status()));
    // As long as a process borrows it: the asker first of all, unless it has ended meanwhile.
    if (!channel->closed()) self->borrowers->add(self->clients->number_of(channel), *kept);
    self->adopted->drop(*kept);
    answer(channel, request, object_wire::encode_reply(*kept));
  };
  adopted->take_over(take.location, std::move(take_over));
}

void ObjectStore::State::take_over_from(NodeId node, std::chrono::milliseconds timeout,
                                        UniqueFunction<void(std::uint64_t)> done) {
  auto failed = std::make_shared<std::uint64_t>(0);
  clients->ask_processes(
      object_wire::Evacuate{node}, timeout,
      [failed](const PeerInfo&, const Result<object_wire::Reply>& reply, bool gone) {
        const auto* evacuated = reply.ok() ? std::get_if<object_wire::Evacuated>(&*reply) : nullptr;
        if (evacuated)
          *failed += evacuated->failed;
        else if (!gone)  // else it refers to nothing any more
          ++*failed;
      },
      [&loop = memory->loop, failed, done = std::move(done)]() mutable {
        loop.post([failed, done = std::move(done)]() mutable { done(*failed); });
      });
}

void ObjectStore::State::list(std::chrono::milliseconds timeout,
                              UniqueFunction<void(StoreList)> done) {
  auto list = std::make_shared<StoreList>();
  clients->ask_processes(
      object_wire::Report{}, timeout,
      [list](const PeerInfo& peer, Result<object_wire::Reply> reply, bool /*gone*/) {
        if (auto* report = reply.ok() ? std::get_if<object_wire::ProcessReport>(&*reply) : nullptr)
          list->processes.push_back({peer.role, peer.worker, peer.pid, std::move(*report)});
        else if (reply.status().code() != ErrorCode::kUnavailable)  // else it has ended
          list->silent.push_back({peer.role, peer.worker, peer.pid});
      },
      [self = shared_from_this(), list, done = std::move(done)]() mutable {
        EventLoop& loop = self->memory->loop;
        loop.post([self = std::move(self), list, done = std::move(done)]() mutable {
          self->list_own(*list);
          done(std::move(*list));
        });
      });
}

void ObjectStore::State::list_own(StoreList& list) const {
  std::map<Client, StoreList::Process> holders;
  for (const auto& [client, channel] : clients->open())
    holders[client] = {channel->peer().role, channel->peer().worker, channel->peer().pid};
  auto add = [&](const ObjectLocation& location) {
    if (!is_here(location) || !memory->table.find(location.extent)) return;
    list.extents[location.extent] = {
        memory->table.is_resident(location.extent), memory->table.pins_of(location.extent), {}};
    const auto holder = holders.find(memory->table.holder_of(location.extent));
    if (holder != holders.end()) list.extents[location.extent].holder = holder->second;
  };
  for (const auto& process : list.processes) {
    for (const auto& object : process.report.objects) add(object.location);
  }
  list.adopted = adopted->all();
  for (const ObjectLocation& location : list.adopted) add(location);
  list.copies = fetcher->copies();
  for (const ObjectLocation& location : list.copies) add(location);
  list.stats = stats();
}

void ObjectStore::State::wire(std::unique_ptr<SpillFolder> folder) {
  auto weak = weak_from_this();
  spiller = std::make_shared<Spiller>(memory, std::move(folder), options.spill,
                                      [weak](std::uint64_t bytes, UniqueFunction<void(bool)> done) {
                                        if (auto self = weak.lock())
                                          self->ask_holders(bytes, std::move(done));
                                      });
  pins = std::make_shared<ResidentPins>(memory, spiller, ended);
  adopted = std::make_shared<AdoptedObjects>(memory, fetcher, borrowers, pins, options);
  borrowers->on_returned([kept = std::weak_ptr(adopted)](const ObjectLocation& location) {
    auto here = kept.lock();
    return here && here->returned(location);
  });
  wire_memory();
}

void ObjectStore::State::wire_memory() {
  auto weak = weak_from_this();
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
    self->borrowers->renew(endpoint);
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
    answer(channel, message, object_wire::encode_failure(request.status()));
    return true;
  }
  std::visit([&](const auto& kind) { state_->on(channel, message, kind); }, *request);
  return true;
}

void ObjectStore::attach(const std::shared_ptr<Channel>& channel) {
  (void)state_->clients->number_of(channel);
}

void ObjectStore::detach(const Channel& channel) { state_->client_ended(channel); }

void ObjectStore::set_endpoint(std::string endpoint) {
  state_->memory->loop.post([state = state_, endpoint = std::move(endpoint)] {
    state->options.endpoint = state->memory->endpoint = endpoint;
  });
}

void ObjectStore::adopt(const ObjectLocation& location,
                        UniqueFunction<void(Result<ObjectLocation>)> done) {
  state_->adopted->adopt(location, std::move(done));
}

void ObjectStore::drop(const ObjectLocation& location) { state_->adopted->drop(location); }

void ObjectStore::keep_what_ends() { state_->keeps_what_ends = true; }

void ObjectStore::take_over_from(NodeId node, std::chrono::milliseconds timeout,
                                 UniqueFunction<void(std::uint64_t)> done) {
  state_->take_over_from(node, timeout, std::move(done));
}

std::optional<ObjectLocation> ObjectStore::find_adopted(ObjectId object) const {
  const ObjectLocation* found = state_->adopted->find(object);
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
  stats.borrows = borrowers->size();
  return stats;
}

}  // namespace runtime
