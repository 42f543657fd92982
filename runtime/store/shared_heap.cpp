#include "runtime/store/shared_heap.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/core/check.h"
#include "runtime/store/awaited.h"
#include "runtime/store/object_loss.h"

namespace runtime {

namespace {

// Objects up to a quarter of a slab are cut from one, so that at most a quarter is lost at its end.
constexpr std::uint64_t kSlabShare = 4;
// Pages of its own range are touched in one go from here on: one system call instead of a
// fault per page.
constexpr std::uint64_t kPopulateBytes = 1 << 20;
// The store bounds what it does; this only ends waiting for a node that is stopped.
constexpr std::chrono::minutes kStoreTimeout{10};
// A wait in the store's line ends there, with its figures; only later here.
constexpr std::chrono::seconds kLineGrace{5};

std::uint64_t wait_ms(Deadline deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::min<Deadline::duration>(deadline - steady_now(), kStoreTimeout));
  return left.count() > 0 ? static_cast<std::uint64_t>(left.count()) : 0;
}

}  // namespace

/// What a view holds on to.
class SharedHeap::Guard {
 public:
  Guard(std::shared_ptr<SharedHeap> heap, std::uint64_t extent, bool own)
      : heap_(std::move(heap)), extent_(extent), own_(own) {}
  ~Guard() {
    if (heap_->loop_.is_forked()) return;
    if (own_) {
      std::lock_guard lock(heap_->mutex_);
      heap_->end_use(extent_);
      heap_->release_live(extent_);
    } else {
      heap_->unpin(extent_);
    }
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::shared_ptr<SharedHeap> heap_;
  std::uint64_t extent_;
  bool own_;
};

SharedHeap::SharedHeap(std::shared_ptr<Channel> node, ObjectClientOptions options)
    : loop_(node->loop()),
      options_(options),
      node_(std::move(node)),
      id_base_(ObjectId::random()) {}

SharedHeap::~SharedHeap() = default;

// One way, with mutex_ held. A failure means that the connection ended, which gives everything
// back.
void SharedHeap::tell(const object_wire::Request& request) {
  if (node_) (void)node_->send(object_wire::request_message(request), Flush::kSoon);
}

// A random base and a counter: as unique as a random id, without a system call for each.
ObjectId SharedHeap::fresh_id() {
  ObjectId id = id_base_;
  std::uint64_t half;
  std::memcpy(&half, id.bytes.data() + 8, sizeof half);
  half += ++id_count_;
  std::memcpy(id.bytes.data() + 8, &half, sizeof half);
  return id;
}

// ---- the store

Status SharedHeap::adopt_store(Result<Message> message) {
  if (!message.ok()) return message.status();
  auto reply = object_wire::decode_reply(message->meta);
  if (!reply.ok()) return reply.status();
  auto* info = std::get_if<object_wire::StoreInfo>(&*reply);
  if (info == nullptr || message->fds.size() != 1)
    return invalid_argument("object store: unexpected answer to open");
  auto segment = Segment::map(std::move(message->fds.front()), info->segment_bytes);
  if (!segment.ok()) return segment.status();
  std::lock_guard lock(mutex_);
  if (segment_) return {};  // another thread was first
  store_ = std::move(*info);
  segment_ = std::move(*segment);
  return {};
}

Status SharedHeap::open(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  if (segment_) return {};
  auto node = node_;
  lock.unlock();
  Status status = adopt_store(
      node->request_blocking(object_wire::request_message(object_wire::Open{}), deadline));
  lock.lock();
  return status;
}

Status SharedHeap::check_extent(const Extent& extent, std::uint64_t bytes) const {
  if (extent.range.size >= bytes && extent.range.begin % kPageBytes == 0 &&
      extent.range.size <= segment_->bytes() &&
      extent.range.begin <= segment_->bytes() - extent.range.size) {
    return {};
  }
  return invalid_argument("object store: the range that it leased lies outside of its segment");
}

Result<Message> SharedHeap::ask_for_lease(Channel& node, std::uint64_t bytes, std::uint64_t wait_ms,
                                          const std::stop_token& stop) {
  Message request = object_wire::request_message(object_wire::Lease{bytes, wait_ms});
  const Deadline deadline = deadline_after(std::chrono::milliseconds(wait_ms) + kLineGrace);
  if (!stop.stop_possible()) return node.request_blocking(std::move(request), deadline);
  auto asked = std::make_shared<Awaited<Result<Message>>>(loop_);
  node.request(std::move(request), deadline,
               [asked, self = shared_from_this()](Result<Message> reply) {
                 if (!asked->offer(reply) && reply.ok()) self->return_late(*reply);
               });
  std::stop_callback wake(stop, [asked] { asked->wake(); });
  auto reply = asked->wait(Deadline::max());
  if (!reply) return cancelled("no longer wanted while it waited for room in the object store");
  return std::move(*reply);
}

void SharedHeap::return_late(const Message& reply) {
  auto leased = object_wire::decode_reply(reply.meta);
  auto* extent = leased.ok() ? std::get_if<Extent>(&*leased) : nullptr;
  if (!extent) return;
  std::lock_guard lock(mutex_);
  give_back(extent->id);
}

Result<SharedHeap::Lease*> SharedHeap::lease(std::unique_lock<std::mutex>& lock,
                                             std::uint64_t bytes, bool open, Deadline deadline,
                                             const std::stop_token& stop) {
  auto node = node_;
  if (!node) return cancelled("the object client is gone");
  lock.unlock();
  const std::uint64_t wait = wait_ms(deadline);
  auto message = ask_for_lease(*node, bytes, wait, stop);
  Status status = message.status(), populated;
  Extent extent;
  if (status.ok()) {
    auto reply = object_wire::decode_reply(message->meta);
    status = reply.status();
    if (auto* leased = status.ok() ? std::get_if<Extent>(&*reply) : nullptr) {
      extent = *leased;
    } else if (status.ok()) {
      status = invalid_argument("object store: unexpected answer to lease");
    }
  }
  if (status.ok()) status = check_extent(extent, bytes);
  // A range that this process has used before needs no touching: walking its pages takes a quarter
  // of the time of the copy.
  if (status.ok() && !open && bytes >= kPopulateBytes &&
      !segment_->is_populated(extent.range.begin, extent.range.size)) {
    populated = segment_->populate(extent.range.begin, extent.range.size);
  }
  lock.lock();
  if (!status.ok()) return status;
  if (!populated.ok()) {
    give_back(extent.id);
    return populated;
  }
  auto [entry, fresh] =
      leases_.emplace(extent.id, Lease{.extent = extent, .open = open, .single = !open});
  if (!fresh) return invalid_argument("object store: it leased the same range twice");
  return &entry->second;
}

void SharedHeap::prefetch_slab() {
  if (prefetching_ || next_slab_ || !node_) return;
  prefetching_ = true;
  node_->request(object_wire::request_message(object_wire::Lease{store_.slab_bytes}),
                 deadline_after(options_.lease_timeout),
                 [weak = weak_from_this()](Result<Message> message) {
                   auto self = weak.lock();
                   if (!self) return;
                   std::optional<Extent> extent;
                   if (message.ok()) {
                     auto reply = object_wire::decode_reply(message->meta);
                     auto* leased = reply.ok() ? std::get_if<Extent>(&*reply) : nullptr;
                     if (leased && self->check_extent(*leased, self->store_.slab_bytes).ok())
                       extent = *leased;
                   }
                   std::lock_guard lock(self->mutex_);
                   self->prefetching_ = false;
                   if (!extent) return;  // create() asks again and says why not
                   if (self->node_) self->next_slab_ = extent;
                 });
}

// ---- creating

WritableObject SharedHeap::carve(Lease& lease, std::size_t size, ObjectId id) {
  ObjectLocation location;
  location.id = id.is_none() ? fresh_id() : id;
  location.node = store_.node;
  location.endpoint = store_.endpoint;
  location.segment = store_.segment;
  location.extent = lease.extent.id;
  location.offset = lease.extent.range.begin + lease.used + sizeof(ObjectHeader);
  location.size = size;
  segment_->stamp(location, ObjectHeader::kWriting);
  lease.used += object_bytes(size);
  ++lease.live;
  ++lease.in_use;
  const std::span<std::byte> data(segment_->writable() + location.offset, size);
  return WritableObject(std::move(location), data, shared_from_this());
}

Result<WritableObject> SharedHeap::create(std::size_t size, ObjectId id, Deadline deadline,
                                          const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (Status status = open(lock, deadline_after(options_.lease_timeout)); !status.ok())
    return status;
  if (size > segment_->bytes()) {
    return resource_exhausted("object of " + std::to_string(size) +
                              " bytes: the object store has " + std::to_string(segment_->bytes()));
  }
  std::uint64_t needed = object_bytes(size);
  if (needed > store_.slab_bytes / kSlabShare) {
    auto own = lease(lock, needed, false, deadline, stop);
    if (!own.ok()) return own.status();
    return carve(**own, size, id);
  }
  while (slab_ == nullptr || slab_->extent.range.size - slab_->used < needed) {
    if (slab_ != nullptr) {
      Lease* full = std::exchange(slab_, nullptr);
      full->open = false;
      ++full->live;  // for the release below, which sees to it that an empty one goes back
      release_live(full->extent.id);
    }
    if (next_slab_) {
      Extent extent = *std::exchange(next_slab_, std::nullopt);
      slab_ = &leases_.emplace(extent.id, Lease{.extent = extent, .open = true}).first->second;
      break;
    }
    auto fresh = lease(lock, store_.slab_bytes, true, deadline, stop);
    if (!fresh.ok()) return fresh.status();
    if (slab_ != nullptr) {  // another thread was as fast: keep its slab, and ours for later
      std::uint64_t extent = (*fresh)->extent.id;
      leases_.erase(extent);
      give_back(extent);
    } else {
      slab_ = *fresh;
    }
  }
  WritableObject object = carve(*slab_, size, id);
  if (slab_->used > slab_->extent.range.size / 2) prefetch_slab();
  return object;
}

ObjectLocation SharedHeap::seal(WritableObject object) {
  CHECK(object.home() == this);
  segment_->stamp(object.location(), ObjectHeader::kSealed);
  {
    std::lock_guard lock(mutex_);
    end_use(object.location().extent);
  }
  return object.release();
}

void SharedHeap::abandon(const ObjectLocation& location) {
  if (loop_.is_forked()) return;
  segment_->stamp(location, ObjectHeader::kFreed);
  std::lock_guard lock(mutex_);
  end_use(location.extent);
  release_live(location.extent);
}

void SharedHeap::free(const ObjectLocation& location) {
  std::lock_guard lock(mutex_);
  if (keeps_all_) return;
  auto lease = leases_.find(location.extent);
  if (lease == leases_.end()) return;
  if (lease->second.single) {
    // Not stamped: the store may keep the very bytes in its own name.
    if (std::exchange(lease->second.freed, true)) return;
  } else if (!lease->second.surrendered) {
    const ByteRange& range = lease->second.extent.range;
    if (!segment_->find(location, range.begin, range.end()).ok()) return;  // freed before
    segment_->stamp(location, ObjectHeader::kFreed);
  }
  release_live(location.extent);
}

void SharedHeap::end_use(std::uint64_t extent) {
  auto lease = leases_.find(extent);
  CHECK(lease != leases_.end());
  CHECK(lease->second.in_use > 0);
  --lease->second.in_use;
}

std::vector<std::uint64_t> SharedHeap::surrender(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> idle;
  for (const auto& [id, lease] : leases_) {
    if (!lease.open && !lease.surrendered && lease.in_use == 0) idle.push_back(id);
  }
  std::sort(idle.begin(), idle.end());  // those made first are the likeliest to be done with
  std::uint64_t sum = 0;
  std::size_t count = 0;
  while (count < idle.size() && sum < bytes) {
    Lease& lease = leases_.at(idle[count++]);
    lease.surrendered = true;
    sum += lease.extent.range.size;
  }
  idle.resize(count);
  return idle;
}

void SharedHeap::release_live(std::uint64_t extent) {
  auto lease = leases_.find(extent);
  CHECK(lease != leases_.end());
  CHECK(lease->second.live > 0);
  if (--lease->second.live > 0) return;
  if (lease->second.open) return;
  leases_.erase(lease);
  give_back(extent);
}

void SharedHeap::give_back(std::uint64_t extent) { tell(object_wire::GiveBack{{extent}}); }

void SharedHeap::retire() {
  if (loop_.is_forked()) return;
  std::lock_guard lock(mutex_);
  if (next_slab_) give_back(std::exchange(next_slab_, std::nullopt)->id);
  if (slab_ != nullptr) {
    Lease* last = std::exchange(slab_, nullptr);
    last->open = false;
    ++last->live;
    release_live(last->extent.id);
  }
  node_.reset();
}

// ---- references

void SharedHeap::borrow(const ObjectLocation& location) {
  std::lock_guard lock(mutex_);
  tell(object_wire::Keep{{location}});
}

void SharedHeap::unborrow(const ObjectLocation& location) {
  std::lock_guard lock(mutex_);
  tell(object_wire::Release{{location}});
}

void SharedHeap::borrow_and_confirm(const ObjectLocation& location, Deadline deadline,
                                    UniqueFunction<void(Status)> done) {
  std::shared_ptr<Channel> node;
  {
    std::lock_guard lock(mutex_);
    node = node_;
  }
  if (!node) return done(cancelled("object " + location.id.hex() + ": the object client is gone"));
  node->request(object_wire::request_message(object_wire::Keep{{location}}), deadline,
                [location, done = std::move(done)](Result<Message> message) mutable {
                  if (!message.ok()) return done(message.status());
                  Status status = object_wire::decode_reply(message->meta).status();
                  done(status.ok() ? status : about_object(location, status));
                });
}

void SharedHeap::remake(const ObjectLocation& lost, const std::string& keeper, Deadline deadline,
                        UniqueFunction<void(Result<ObjectLocation>)> done) {
  std::shared_ptr<Channel> node;
  {
    std::lock_guard lock(mutex_);
    node = node_;
  }
  if (!node) return done(cancelled("object " + lost.id.hex() + ": the object client is gone"));
  node->request(object_wire::request_message(object_wire::Remake{lost, keeper}), deadline,
                [done = std::move(done)](Result<Message> message) mutable {
                  if (!message.ok()) return done(message.status());
                  auto reply = object_wire::decode_reply(message->meta);
                  if (!reply.ok()) return done(reply.status());
                  auto* found = std::get_if<ObjectLocation>(&*reply);
                  if (found == nullptr)
                    return done(invalid_argument("object store: unexpected answer to remake"));
                  done(std::move(*found));
                });
}

void SharedHeap::take_over(const ObjectLocation& location, Deadline deadline,
                           UniqueFunction<void(Result<ObjectLocation>)> done) {
  std::shared_ptr<Channel> node;
  {
    std::lock_guard lock(mutex_);
    node = node_;
  }
  if (!node) return done(cancelled("object " + location.id.hex() + ": the object client is gone"));
  node->request(object_wire::request_message(object_wire::TakeOver{location}), deadline,
                [done = std::move(done)](Result<Message> message) mutable {
                  if (!message.ok()) return done(message.status());
                  auto reply = object_wire::decode_reply(message->meta);
                  if (!reply.ok()) return done(reply.status());
                  auto* kept = std::get_if<ObjectLocation>(&*reply);
                  if (kept == nullptr)
                    return done(invalid_argument(
                        "object store: unexpected answer to a request to take over"));
                  done(std::move(*kept));
                });
}

void SharedHeap::keep_all() {
  std::lock_guard lock(mutex_);
  keeps_all_ = true;
}

// ---- reading

void SharedHeap::unpin(std::uint64_t extent) {
  std::lock_guard lock(mutex_);
  auto pinned = pinned_.find(extent);
  CHECK(pinned != pinned_.end());
  if (--pinned->second.views > 0) return;
  std::vector<std::uint64_t> extents(pinned->second.pins, extent);
  pinned_.erase(pinned);
  tell(object_wire::Unpin{std::move(extents)});
}

// The extent is kept by one count that the caller has taken; it goes into the view, or back.
Result<BytesView> SharedHeap::view(const ObjectLocation& location, const Extent& extent, bool own) {
  auto guard = std::make_shared<Guard>(shared_from_this(), extent.id, own);
  ObjectLocation here = location;  // the extent may have moved since the location was made
  here.offset = here.offset - extent.home + extent.range.begin;
  auto bytes = segment_->find(here, extent.range.begin, extent.range.end());
  if (!bytes.ok()) return about_object(location, bytes.status());
  return BytesView(location.id, Buffer(*bytes, std::move(guard)));
}

void SharedHeap::get(const ObjectLocation& location, Deadline deadline, GetDone done) {
  std::unique_lock lock(mutex_);
  if (!node_)
    return lock.unlock(),
           done(cancelled("object " + location.id.hex() + ": the object client is gone"));
  auto node = node_;
  if (!segment_) {
    lock.unlock();
    return node->request(object_wire::request_message(object_wire::Open{}),
                         deadline_after(kStoreTimeout),
                         [self = shared_from_this(), location, deadline,
                          done = std::move(done)](Result<Message> message) mutable {
                           Status status = self->adopt_store(std::move(message));
                           if (!status.ok()) return done(std::move(status));
                           self->get(location, deadline, std::move(done));
                         });
  }
  if (location.node != store_.node) {
    lock.unlock();
    return fetch_and_view(*node, location, deadline, std::move(done));
  }
  if (location.segment != store_.segment)
    return lock.unlock(), done(object_loss(location, "its segment is gone"));
  if (auto lease = leases_.find(location.extent);
      lease != leases_.end() && !lease->second.surrendered && !lease->second.freed) {
    ++lease->second.live;
    ++lease->second.in_use;
    Extent extent = lease->second.extent;
    lock.unlock();
    return done(view(location, extent, true));
  }
  if (auto pinned = pinned_.find(location.extent); pinned != pinned_.end()) {
    ++pinned->second.views;
    Extent extent = pinned->second.extent;
    lock.unlock();
    return done(view(location, extent, false));
  }
  lock.unlock();
  pin_and_view(*node, location, deadline, std::move(done));
}

void SharedHeap::pin_and_view(Channel& node, const ObjectLocation& location, Deadline deadline,
                              GetDone done) {
  node.request(object_wire::request_message(object_wire::Pin{location.extent, wait_ms(deadline)}),
               deadline_after(kStoreTimeout + kLineGrace),
               [self = shared_from_this(), location,
                done = std::move(done)](Result<Message> message) mutable {
                 if (!message.ok()) return done(message.status());
                 auto reply = object_wire::decode_reply(message->meta);
                 if (!reply.ok()) return done(about_object(location, reply.status()));
                 auto* extent = std::get_if<Extent>(&*reply);
                 if (extent == nullptr || extent->id != location.extent)
                   return done(invalid_argument("object store: unexpected answer to pin"));
                 if (Status status = self->check_extent(*extent, 0); !status.ok())
                   return done(std::move(status));
                 self->add_pin(*extent);
                 done(self->view(location, *extent, false));
               });
}

void SharedHeap::fetch_and_view(Channel& node, const ObjectLocation& location, Deadline deadline,
                                GetDone done) {
  node.request(object_wire::request_message(object_wire::Fetch{location, wait_ms(deadline)}),
               deadline_after(kStoreTimeout + kLineGrace),
               [self = shared_from_this(), location,
                done = std::move(done)](Result<Message> message) mutable {
                 if (!message.ok()) return done(message.status());
                 auto reply = object_wire::decode_reply(message->meta);
                 if (!reply.ok()) return done(about_object(location, reply.status()));
                 auto* here = std::get_if<ObjectLocation>(&*reply);
                 if (here == nullptr)
                   return done(invalid_argument("object store: unexpected answer to fetch"));
                 // The store leased exactly this object's range to itself.
                 if (here->offset < sizeof(ObjectHeader) || here->size > self->segment_->bytes())
                   return done(invalid_argument("object store: bad location"));
                 Extent extent{here->extent,
                               {here->offset - sizeof(ObjectHeader),
                                round_to_pages(object_bytes(here->size))},
                               0};
                 extent.home = extent.range.begin;
                 if (Status status = self->check_extent(extent, 0); !status.ok())
                   return done(std::move(status));
                 self->add_pin(extent);
                 done(self->view(*here, extent, false));
               });
}

void SharedHeap::add_pin(const Extent& extent) {
  std::lock_guard lock(mutex_);
  Pinned& pinned = pinned_[extent.id];
  pinned.extent = extent;
  ++pinned.views;
  ++pinned.pins;
}

}  // namespace runtime
