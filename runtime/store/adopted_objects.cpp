#include "runtime/store/adopted_objects.h"

#include <cstring>
#include <optional>
#include <utility>

#include "runtime/core/check.h"

namespace runtime::object_detail {

void AdoptedObjects::adopt(const ObjectLocation& location, Done done) {
  if (location.node != node_) {
    return fetch_moved(location, room_deadline(),
                       [self = shared_from_this(), id = location.id,
                        done = std::move(done)](Result<ObjectLocation> copy) mutable {
                         self->adopt_copy(id, std::move(copy), std::move(done));
                       });
  }
  pins_->pin(
      location.extent, kStoreItself, room_deadline(),
      [self = shared_from_this(), location, done = std::move(done)](Result<Extent> extent) mutable {
        if (!extent.ok()) return done(extent.status());
        self->adopt_here(location, *extent, std::move(done));
      });
}

void AdoptedObjects::take_over(const ObjectLocation& location, Done done) {
  const ObjectLocation* known = find(location.id);
  if (!known || !memory_->table.keep(known->extent)) return adopt(location, std::move(done));
  const ObjectLocation kept = *known;
  note(kept);
  done(kept);
}

void AdoptedObjects::adopt_copy(ObjectId id, Result<ObjectLocation> copy, Done done) {
  if (!copy.ok()) return done(copy.status());
  std::optional<ObjectLocation> mine = fetcher_->hand_over(id);
  // Another process has asked for the same copy and was faster.
  const ObjectLocation* known = mine ? nullptr : find(id);
  if (known && memory_->table.keep(known->extent)) mine = *known;
  if (!mine) return done(object_lost("the copy that was to be kept is gone"));
  note(*mine);
  done(*mine);
}

void AdoptedObjects::unpin(std::uint64_t extent) {
  CHECK(memory_->table.unpin(extent, kStoreItself));
  memory_->changed();
}

void AdoptedObjects::adopt_here(const ObjectLocation& location, const Extent& extent, Done done) {
  ObjectLocation here = location;
  here.offset = here.offset - extent.home + extent.range.begin;
  auto bytes = memory_->segment->find(here, extent.range.begin, extent.range.end());
  if (!bytes.ok()) return unpin(extent.id), done(bytes.status());
  const bool is_alone = location.offset == extent.home + sizeof(ObjectHeader) &&
                        extent.range.size == round_to_pages(object_bytes(location.size));
  if (!is_alone) return adopt_part(location, extent, *bytes, std::move(done));
  CHECK(memory_->table.keep(extent.id));
  note(location);
  unpin(extent.id);
  done(location);
}

void AdoptedObjects::adopt_part(const ObjectLocation& location, const Extent& extent,
                                std::span<const std::byte> bytes, Done done) {
  auto attempt = [self = shared_from_this(), location, bytes, pinned = extent.id,
                  done = std::make_shared<Done>(std::move(done))](bool give_up) {
    StoreMemory& memory = *self->memory_;
    auto own = give_up ? std::nullopt : memory.lease(object_bytes(location.size), kStoreItself);
    if (!own && !give_up) return false;
    if (!own) {
      self->unpin(pinned);
      (*done)(resource_exhausted(memory.full(location.size)));
      return true;
    }
    ObjectLocation copy = location;
    copy.extent = own->id;
    copy.offset = own->range.begin + sizeof(ObjectHeader);
    std::memcpy(memory.segment->writable() + copy.offset, bytes.data(), bytes.size());
    memory.segment->stamp(copy, ObjectHeader::kSealed);
    CHECK(memory.table.keep(own->id));
    CHECK(memory.table.give_back(own->id, kStoreItself));
    self->note(copy);
    self->unpin(pinned);
    (*done)(copy);
    return true;
  };
  memory_->line->wait(
      object_bytes(location.size), kStoreItself, room_deadline(),
      [attempt] { return attempt(false); }, [attempt] { attempt(true); });
}

void AdoptedObjects::note(const ObjectLocation& location) {
  Adopted& kept = adopted_[location.extent];
  kept.location = location;
  ++kept.count;
}

void AdoptedObjects::release(std::uint64_t extent, std::uint32_t count) {
  Adopted& kept = adopted_.at(extent);
  CHECK(count <= kept.count);
  kept.count -= count;
  if (kept.count == 0) adopted_.erase(extent);
  for (; count > 0; --count) CHECK(memory_->table.unkeep(extent));
  memory_->changed();
}

void AdoptedObjects::drop(const ObjectLocation& location) {
  auto kept = adopted_.find(location.extent);
  if (kept == adopted_.end() || kept->second.dropped == kept->second.count) return;
  if (borrowers_->has(location))
    ++kept->second.dropped;
  else
    release(location.extent, 1);
}

bool AdoptedObjects::returned(const ObjectLocation& location) {
  auto kept = adopted_.find(location.extent);
  if (kept == adopted_.end() || kept->second.dropped == 0) return false;
  release(location.extent, std::exchange(kept->second.dropped, 0));
  return true;
}

const ObjectLocation* AdoptedObjects::find(ObjectId object) const {
  for (const auto& [extent, kept] : adopted_) {
    if (kept.location.id == object) return &kept.location;
  }
  return nullptr;
}

std::vector<ObjectLocation> AdoptedObjects::all() const {
  std::vector<ObjectLocation> locations;
  for (const auto& [extent, kept] : adopted_) locations.push_back(kept.location);
  return locations;
}

void AdoptedObjects::fetch_moved(const ObjectLocation& location, Deadline room_deadline,
                                 Done done) {
  fetcher_->fetch(
      location, room_deadline,
      [self = shared_from_this(), location, room_deadline,
       done = std::move(done)](Result<ObjectLocation> copy) mutable {
        const bool is_gone = !copy.ok() && (copy.status().code() == ErrorCode::kObjectLost ||
                                            copy.status().code() == ErrorCode::kUnavailable);
        if (!is_gone || !self->find_moved_) return done(std::move(copy));
        const Status why = copy.status();
        self->find_moved_(location, [self, location, room_deadline, why,
                                     done = std::move(done)](Result<ObjectLocation> moved) mutable {
          if (!moved.ok() || *moved == location) return done(why);
          if (moved->node == self->node_) return done(std::move(moved));
          self->fetcher_->fetch(*moved, room_deadline, std::move(done));
        });
      });
}

}  // namespace runtime::object_detail
