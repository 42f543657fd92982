// Who keeps objects beside the processes that made them: the store itself for the cluster, and
// borrowers that got them from others than their owners.
#include <cstring>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/object/object_store_state.h"

namespace runtime {

namespace {

// Of ended processes' extents, for saying why they are gone.
constexpr std::size_t kEndedMax = 50'000;
constexpr std::chrono::seconds kOwnerTimeout{10};
constexpr int kRenewalsMax = 6;
constexpr std::chrono::milliseconds kRenewalPause{50};

std::string describe_sharer(const PeerInfo& peer) {
  if (peer.role == Role::kWorker) return "worker " + peer.worker.short_hex();
  if (peer.role == Role::kDriver) return "driver";
  return "process";
}

}  // namespace

// -- Ends

Status ObjectStore::State::lost(std::uint64_t extent) const {
  auto known = ended.find(extent);
  if (known == ended.end()) return object_lost("it was freed: nobody referred to it any more");
  const Ended& owner = known->second;
  std::string how = options.how_ended ? options.how_ended(owner.pid) : "";
  return object_lost("its owner, " + owner.who + " (pid " + std::to_string(owner.pid) +
                     " on node " + options.credentials.node.short_hex() + "), ended" +
                     (how.empty() ? "" : ": " + how));
}

void ObjectStore::State::client_ended(const Channel& channel) {
  auto found = clients.extract(channel.serial());
  if (found.empty()) return;
  const Client client = found.mapped().client;
  for (std::uint64_t extent : memory->table.leases_of(client)) {
    ended.emplace(extent, Ended{describe_sharer(channel.peer()), channel.peer().pid});
    ended_order.push_back(extent);
  }
  while (ended_order.size() > kEndedMax) {
    ended.erase(ended_order.front());
    ended_order.pop_front();
  }
  memory->line->drop(client);
  if (keeps_what_ends) {
    for (std::uint64_t extent : memory->table.leases_of(client)) CHECK(memory->table.keep(extent));
  }
  memory->table.drop(client);
  for (const ObjectLocation& location : borrows.drop(client)) borrow_ended(location);
  memory->changed();
}

void ObjectStore::State::send_ended(std::uint64_t extent) {
  SourceTree::Shared shared = sources.take(extent);
  if (shared.objects.empty()) return;
  const Buffer meta = object_wire::encode_request(object_wire::Ended{std::move(shared.objects)});
  for (const auto& reader : shared.readers) {
    Message message;
    message.kind = FrameKind::kObject;
    message.meta = meta;
    (void)reader->send(std::move(message),
                       Flush::kSoon);  // not sent: its copies go when it needs the room
  }
}

// -- Borrowers

std::shared_ptr<Channel> ObjectStore::State::channel_of(Client client) const {
  for (const auto& [address, connected] : clients) {
    if (connected.client == client) return connected.channel.lock();
  }
  return nullptr;
}

void ObjectStore::State::tell_owner(const ObjectLocation& location, bool borrowed,
                                    UniqueFunction<void(Status)> done) {
  if (!is_here(location)) {
    object_wire::Request request = object_wire::Keep{{location}};
    if (!borrowed) request = object_wire::Release{{location}};
    if (borrowed) {
      return peers->ask(location.endpoint, request, deadline_after(kOwnerTimeout),
                        [done = std::move(done)](Result<object_wire::Reply> reply) mutable {
                          if (done) done(reply.status());
                        });
    }
    return peers->with(location.endpoint, 0,
                       [request = std::move(request)](Result<std::shared_ptr<Channel>> channel) {
                         if (!channel.ok())
                           return;  // that store has dropped what it knew with the connection
                         Message message;
                         message.kind = FrameKind::kObject;
                         message.meta = object_wire::encode_request(request);
                         (void)(*channel)->send(std::move(message), Flush::kSoon);
                       });
  }
  const Client owner = memory->table.holder_of(location.extent);
  if (auto channel = owner == 0 ? nullptr : channel_of(owner); channel) {
    object_wire::Request request = object_wire::Hold{{location}};
    if (!borrowed) request = object_wire::Unhold{{location}};
    Message message;
    message.kind = FrameKind::kObject;
    message.meta = object_wire::encode_request(request);
    (void)channel->send(std::move(message),
                        Flush::kSoon);  // not sent: the owner ends, and its objects with it
  }
  if (done) done(memory->table.find(location.extent) ? Status() : lost(location.extent));
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::Keep& keep) {
  const Client client = client_of(channel);
  struct Asking {
    std::size_t outstanding = 1;
    Status first;
    std::shared_ptr<Channel> channel;
    Message request;
    void end(const Status& status) {
      if (first.ok() && !status.ok()) first = status;
      if (--outstanding > 0) return;
      answer(channel, request,
             first.ok() ? object_wire::encode_reply(object_wire::Done{})
                        : object_wire::encode_failure(first));
    }
  };
  auto asking = std::make_shared<Asking>();
  asking->channel = channel;
  asking->request.kind = message.kind;
  asking->request.id = message.id;
  // A node speaks for all its processes, and repeats itself after a broken connection.
  const bool counted = channel->peer().role != Role::kNode;
  for (const ObjectLocation& location : keep.locations) {
    const bool first = borrows.add(client, location, counted);
    if (!first && is_here(location)) {
      if (!memory->table.find(location.extent) && asking->first.ok())
        asking->first = lost(location.extent);
    } else if (first || message.id != 0) {
      ++asking->outstanding;
      tell_owner(location, true, [asking](const Status& status) { asking->end(status); });
    }
  }
  asking->end({});
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message&,
                            const object_wire::Release& release) {
  const Client client = client_of(channel);
  for (const ObjectLocation& location : release.locations) remove_borrow(client, location);
}

void ObjectStore::State::remove_borrow(Client client, const ObjectLocation& location) {
  if (borrows.remove(client, location)) borrow_ended(location);
}

void ObjectStore::State::borrow_ended(const ObjectLocation& location) {
  auto kept = is_here(location) ? adopted.find(location.extent) : adopted.end();
  if (kept != adopted.end() && kept->second.dropped > 0)
    release_adopted(location.extent, std::exchange(kept->second.dropped, 0));
  else
    tell_owner(location, false, {});
}

void ObjectStore::State::renew_borrows(const std::string& endpoint, int attempt) {
  if (borrows.at(endpoint, options.credentials.node).empty()) return;
  peers->with(
      endpoint, 0,
      [weak = weak_from_this(), endpoint, attempt](Result<std::shared_ptr<Channel>> channel) {
        auto self = weak.lock();
        if (!self) return;
        if (channel.ok()) {
          Message message;
          message.kind = FrameKind::kObject;
          message.meta = object_wire::encode_request(
              object_wire::Keep{self->borrows.at(endpoint, self->options.credentials.node)});
          (void)(*channel)->send(std::move(message));  // not sent: then this connection has ended
                                                       // too, and on_first_lost comes again
          return;
        }
        if (attempt >= kRenewalsMax) return;
        auto pause =
            std::make_shared<Timer>(self->memory->loop.context(), kRenewalPause * (1 << attempt));
        pause->async_wait([weak, endpoint, attempt, pause](const boost::system::error_code&) {
          if (auto again = weak.lock()) again->renew_borrows(endpoint, attempt + 1);
        });
      });
}

// -- Lost objects

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::Remake& remake) {
  Message request;
  request.kind = message.kind;
  request.id = message.id;
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
    UniqueFunction<void(Result<ObjectLocation>)> done;
    std::size_t outstanding = 1;
    Status failure;
    void end(Status why) {
      if (why.code() != ErrorCode::kNotFound && !why.ok()) failure = std::move(why);
      if (--outstanding == 0 && done) done(failure);
    }
  };
  auto asking = std::make_shared<Asking>();
  asking->done = std::move(done);
  asking->failure =
      object_lost("the process that had its task run, on node " +
                  options.credentials.node.short_hex() + ", has ended or refers to it no more");
  const Buffer meta = object_wire::encode_request(remake);
  for (const auto& channel : processes()) {
    ++asking->outstanding;
    Message request;
    request.kind = FrameKind::kObject;
    request.meta = meta;
    channel->request(
        std::move(request), deadline_after(options.wait_max), [asking](Result<Message> message) {
          auto reply = message.ok() ? object_wire::decode_reply(message->meta) : message.status();
          auto* found = reply.ok() ? std::get_if<ObjectLocation>(&*reply) : nullptr;
          if (found != nullptr && asking->done)
            std::exchange(asking->done, nullptr)(std::move(*found));
          // One that ended meanwhile could not have made it.
          const bool gone = !message.ok() && message.status().code() == ErrorCode::kUnavailable;
          asking->end(found != nullptr || gone ? Status() : reply.status());
        });
  }
  asking->end({});
}

// -- Copies of other nodes

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::Source& source) {
  if (!is_here(source.location))
    return answer(channel, message,
                  object_wire::encode_failure(invalid_argument("the object is of another node")));
  if (!memory->table.find(source.location.extent))
    return answer(channel, message, object_wire::encode_failure(lost(source.location.extent)));
  memory->table.mark_shared(source.location.extent);
  sources.add_reader(source.location.extent, source.location.id, channel);
  answer(channel, message,
         object_wire::encode_reply(object_wire::SourceFound{sources.assign(
             source.location.extent, source.location.id, source.endpoint, source.failed)}));
}

// -- In the store's own name

void ObjectStore::State::adopt(const ObjectLocation& location,
                               UniqueFunction<void(Result<ObjectLocation>)> done) {
  if (!is_here(location)) {
    return fetch_moved(location,
                       room_deadline(static_cast<std::uint64_t>(options.wait_max.count())),
                       [self = shared_from_this(), id = location.id,
                        done = std::move(done)](Result<ObjectLocation> copy) mutable {
                         self->adopt_copy(id, std::move(copy), std::move(done));
                       });
  }
  pin_resident(
      location.extent, object_detail::kStoreItself,
      room_deadline(static_cast<std::uint64_t>(options.wait_max.count())),
      [self = shared_from_this(), location, done = std::move(done)](Result<Extent> extent) mutable {
        if (!extent.ok()) return done(extent.status());
        self->adopt_here(location, *extent, std::move(done));
      });
}

void ObjectStore::State::adopt_copy(ObjectId id, Result<ObjectLocation> copy,
                                    UniqueFunction<void(Result<ObjectLocation>)> done) {
  if (!copy.ok()) return done(copy.status());
  std::optional<ObjectLocation> mine = fetcher->hand_over(id);
  // Somebody else has asked for the same copy and was faster.
  const ObjectLocation* known = mine ? nullptr : adopted_as(id);
  if (known && memory->table.keep(known->extent)) mine = *known;
  if (!mine) return done(object_lost("the copy that was to be kept is gone"));
  note_adopted(*mine);
  done(*mine);
}

void ObjectStore::State::adopt_here(const ObjectLocation& location, const Extent& extent,
                                    UniqueFunction<void(Result<ObjectLocation>)> done) {
  auto unpin = [self = shared_from_this(), id = extent.id] {
    CHECK(self->memory->table.unpin(id, object_detail::kStoreItself));
    self->memory->changed();
  };
  ObjectLocation here = location;
  here.offset = here.offset - extent.home + extent.range.begin;
  auto bytes = memory->segment->find(here, extent.range.begin, extent.range.end());
  if (!bytes.ok()) return unpin(), done(bytes.status());
  if (location.offset == extent.home + sizeof(ObjectHeader) &&
      extent.range.size == round_to_pages(object_bytes(location.size))) {
    CHECK(memory->table.keep(extent.id));
    note_adopted(location);
    return unpin(), done(location);
  }
  // It shares its range with others, which would all stay with it.
  auto attempt = [self = shared_from_this(), location, bytes = *bytes, unpin,
                  done = std::make_shared<decltype(done)>(std::move(done))](bool give_up) {
    auto own = give_up
                   ? std::nullopt
                   : self->memory->lease(object_bytes(location.size), object_detail::kStoreItself);
    if (!own && !give_up) return false;
    if (!own) return unpin(), (*done)(resource_exhausted(self->full(location.size))), true;
    ObjectLocation copy = location;
    copy.extent = own->id;
    copy.offset = own->range.begin + sizeof(ObjectHeader);
    std::memcpy(self->memory->segment->writable() + copy.offset, bytes.data(), bytes.size());
    self->memory->segment->stamp(copy, ObjectHeader::kSealed);
    CHECK(self->memory->table.keep(own->id));
    CHECK(self->memory->table.give_back(own->id, object_detail::kStoreItself));
    self->note_adopted(copy);
    unpin();
    (*done)(copy);
    return true;
  };
  memory->line->wait(
      object_bytes(location.size), object_detail::kStoreItself,
      room_deadline(static_cast<std::uint64_t>(options.wait_max.count())),
      [attempt] { return attempt(false); }, [attempt] { attempt(true); });
}

void ObjectStore::State::note_adopted(const ObjectLocation& location) {
  Adopted& kept = adopted[location.extent];
  kept.location = location;
  ++kept.count;
}

void ObjectStore::State::release_adopted(std::uint64_t extent, std::uint32_t count) {
  Adopted& kept = adopted.at(extent);
  CHECK(count <= kept.count);
  kept.count -= count;
  if (kept.count == 0) adopted.erase(extent);
  for (; count > 0; --count) CHECK(memory->table.unkeep(extent));
  memory->changed();
}

void ObjectStore::State::drop(const ObjectLocation& location) {
  auto kept = adopted.find(location.extent);
  if (kept == adopted.end() || kept->second.dropped == kept->second.count) return;
  if (borrows.has(location))
    ++kept->second.dropped;
  else
    release_adopted(location.extent, 1);
}

// -- Of nodes that leave

const ObjectLocation* ObjectStore::State::adopted_as(ObjectId object) const {
  for (const auto& [extent, kept] : adopted) {
    if (kept.location.id == object) return &kept.location;
  }
  return nullptr;
}

void ObjectStore::State::fetch_moved(const ObjectLocation& location, Deadline room_deadline,
                                     UniqueFunction<void(Result<ObjectLocation>)> done) {
  fetcher->fetch(location, room_deadline,
                 [self = shared_from_this(), location, room_deadline,
                  done = std::move(done)](Result<ObjectLocation> copy) mutable {
                   const bool is_gone =
                       !copy.ok() && (copy.status().code() == ErrorCode::kObjectLost ||
                                      copy.status().code() == ErrorCode::kUnavailable);
                   if (!is_gone || !self->options.find_moved) return done(std::move(copy));
                   const Status why = copy.status();
                   self->options.find_moved(
                       location, [self, location, room_deadline, why,
                                  done = std::move(done)](Result<ObjectLocation> moved) mutable {
                         if (!moved.ok() || *moved == location) return done(why);
                         if (self->is_here(*moved)) return done(std::move(moved));
                         self->fetcher->fetch(*moved, room_deadline, std::move(done));
                       });
                 });
}

void ObjectStore::State::on(const std::shared_ptr<Channel>& channel, const Message& message,
                            const object_wire::TakeOver& take) {
  Message request;
  request.kind = message.kind;
  request.id = message.id;
  if (channel->peer().role == Role::kNode) {
    return answer(channel, request,
                  object_wire::encode_failure(invalid_argument(
                      "a store takes objects over for the processes of its own node")));
  }
  auto take_over = [self = shared_from_this(), channel,
                    request = std::move(request)](Result<ObjectLocation> kept) {
    if (!kept.ok()) return answer(channel, request, object_wire::encode_failure(kept.status()));
    // As long as somebody borrows it: the asker first of all, unless it has ended meanwhile.
    if (!channel->closed()) self->borrows.add(self->client_of(channel), *kept);
    self->drop(*kept);
    answer(channel, request, object_wire::encode_reply(*kept));
  };
  if (const ObjectLocation* known = adopted_as(take.location.id);
      known && memory->table.keep(known->extent)) {
    const ObjectLocation kept = *known;
    note_adopted(kept);
    return take_over(kept);
  }
  adopt(take.location, std::move(take_over));
}

std::vector<std::shared_ptr<Channel>> ObjectStore::State::processes() const {
  std::vector<std::shared_ptr<Channel>> open;
  for (const auto& [serial, connected] : clients) {
    auto channel = connected.channel.lock();
    if (!channel || channel->closed()) continue;
    if (channel->peer().role == Role::kDriver || channel->peer().role == Role::kWorker)
      open.push_back(std::move(channel));
  }
  return open;
}

void ObjectStore::State::take_over_from(NodeId node, std::chrono::milliseconds timeout,
                                        UniqueFunction<void(std::uint64_t)> done) {
  struct Asking {
    UniqueFunction<void(std::uint64_t)> done;
    std::size_t outstanding = 1;
    std::uint64_t failed = 0;
    void end() {
      if (--outstanding == 0) done(failed);
    }
  };
  auto asking = std::make_shared<Asking>();
  asking->done = std::move(done);
  const Buffer meta = object_wire::encode_request(object_wire::Evacuate{node});
  for (const auto& channel : processes()) {
    ++asking->outstanding;
    Message request;
    request.kind = FrameKind::kObject;
    request.meta = meta;
    channel->request(
        std::move(request), deadline_after(timeout), [asking](Result<Message> message) {
          auto reply = message.ok() ? object_wire::decode_reply(message->meta) : message.status();
          auto* evacuated = reply.ok() ? std::get_if<object_wire::Evacuated>(&*reply) : nullptr;
          // One that has ended refers to nothing any more.
          const bool gone = !message.ok() && message.status().code() == ErrorCode::kUnavailable;
          if (evacuated)
            asking->failed += evacuated->failed;
          else if (!gone)
            ++asking->failed;
          asking->end();
        });
  }
  memory->loop.post([asking] { asking->end(); });
}

// -- For people

void ObjectStore::State::list(std::chrono::milliseconds timeout,
                              UniqueFunction<void(StoreList)> done) {
  struct Asking {
    UniqueFunction<void(StoreList)> done;
    StoreList list;
    std::size_t outstanding = 1;
  };
  auto asking = std::make_shared<Asking>();
  asking->done = std::move(done);
  auto end = [self = shared_from_this(), asking] {
    if (--asking->outstanding > 0) return;
    self->list_own(asking->list);
    asking->done(std::move(asking->list));
  };
  for (const auto& channel : processes()) {
    const PeerInfo peer = channel->peer();
    ++asking->outstanding;
    Message request;
    request.kind = FrameKind::kObject;
    request.meta = object_wire::encode_request(object_wire::Report{});
    channel->request(
        std::move(request), deadline_after(timeout), [asking, end, peer](Result<Message> message) {
          auto reply = message.ok() ? object_wire::decode_reply(message->meta) : message.status();
          if (auto* report =
                  reply.ok() ? std::get_if<object_wire::ProcessReport>(&*reply) : nullptr) {
            asking->list.processes.push_back(
                {peer.role, peer.worker, peer.pid, std::move(*report)});
          } else if (reply.status().code() != ErrorCode::kUnavailable) {  // else it has ended
            asking->list.silent.push_back({peer.role, peer.worker, peer.pid});
          }
          end();
        });
  }
  memory->loop.post(end);
}

void ObjectStore::State::list_own(StoreList& list) const {
  std::map<Client, StoreList::Process> holders;
  for (const auto& [serial, connected] : clients) {
    const auto channel = connected.channel.lock();
    if (channel && !channel->closed())
      holders[connected.client] = {channel->peer().role, channel->peer().worker,
                                   channel->peer().pid};
  }
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
  for (const auto& [extent, kept] : adopted) {
    list.adopted.push_back(kept.location);
    add(kept.location);
  }
  list.copies = fetcher->copies();
  for (const ObjectLocation& location : list.copies) add(location);
  list.stats = stats();
}

}  // namespace runtime
