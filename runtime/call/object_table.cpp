#include "runtime/call/object_table.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/core/clock.h"

namespace runtime {

namespace {

std::uint64_t ms_since(std::chrono::steady_clock::time_point then) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(steady_now() - then).count());
}

}  // namespace

void ObjectTable::add(const std::shared_ptr<StoredObject>& object, const ObjectLocation& location,
                      bool owned) {
  std::lock_guard lock(mutex_);
  if (owned) {
    owned_[location.id] = {object, steady_now(), nullptr};
    return;
  }
  auto [borrowed, fresh] = borrowed_.try_emplace(location.id);
  if (fresh) borrowed->second = {location, 0, steady_now(), {}};
  ++borrowed->second.handles;
  borrowed->second.objects.push_back(object);
}

std::vector<std::shared_ptr<StoredObject>> ObjectTable::borrowed_from(NodeId node) const {
  std::vector<std::shared_ptr<StoredObject>> found;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, borrowed] : borrowed_) {
      for (const auto& weak : borrowed.objects) {
        if (auto object = weak.lock()) found.push_back(std::move(object));
      }
    }
  }
  // Outside of the lock: an object's own is taken before this one.
  std::erase_if(found, [&](const std::shared_ptr<StoredObject>& object) {
    return object->location().node != node;
  });
  return found;
}

void ObjectTable::add_remakeable(const std::shared_ptr<StoredObject>& object) {
  const ObjectId id = object->location().id;
  std::lock_guard lock(mutex_);
  remakeable_.emplace(id, object);
}

std::shared_ptr<StoredObject> ObjectTable::find_remakeable(ObjectId id) const {
  std::lock_guard lock(mutex_);
  auto [first, last] = remakeable_.equal_range(id);
  for (auto candidate = first; candidate != last; ++candidate) {
    if (auto object = candidate->second.lock()) return object;
  }
  return nullptr;
}

void ObjectTable::remove(const ObjectLocation& location, bool owned) {
  std::lock_guard lock(mutex_);
  auto [first, last] = remakeable_.equal_range(location.id);
  while (first != last)
    first = first->second.expired() ? remakeable_.erase(first) : std::next(first);
  if (owned) {
    owned_.erase(location.id);
  } else if (auto borrowed = borrowed_.find(location.id); borrowed != borrowed_.end()) {
    if (--borrowed->second.handles == 0)
      borrowed_.erase(borrowed);
    else
      std::erase_if(borrowed->second.objects, [](const auto& weak) { return weak.expired(); });
  }
}

void ObjectTable::hold(const ObjectLocation& location) {
  std::lock_guard lock(mutex_);
  if (auto owned = owned_.find(location.id); owned != owned_.end())
    owned->second.held = owned->second.object.lock();
}

void ObjectTable::unhold(const ObjectLocation& location) {
  std::shared_ptr<StoredObject> dropped;
  std::lock_guard lock(mutex_);
  if (auto owned = owned_.find(location.id); owned != owned_.end())
    dropped = std::move(owned->second.held);
  // `dropped` goes after the lock: its destructor comes back here.
}

void ObjectTable::clear() {
  std::vector<std::shared_ptr<StoredObject>> dropped;
  std::lock_guard lock(mutex_);
  for (auto& [id, owned] : owned_) dropped.push_back(std::move(owned.held));
}

object_wire::ProcessReport ObjectTable::report(const VisitLent& lent) const {
  struct Lent {
    std::uint32_t all = 0;
    std::uint32_t in_flight = 0;
  };
  std::unordered_map<ObjectId, Lent> counts;
  lent([&](const ObjectLocation& location, bool in_flight) {
    Lent& count = counts[location.id];
    ++count.all;
    if (in_flight) ++count.in_flight;
  });
  object_wire::ProcessReport report;
  std::vector<std::shared_ptr<StoredObject>> alive;  // dropped after the lock
  std::lock_guard lock(mutex_);
  for (const auto& [id, owned] : owned_) {
    auto object = owned.object.lock();
    if (!object) continue;
    const auto uses = static_cast<std::uint32_t>(object.use_count()) - 1;
    const std::uint32_t held = owned.held ? 1 : 0;
    const Lent count = counts[id];
    report.objects.push_back({object->location(), true, uses - std::min(uses, held), count.all,
                              count.in_flight, held, ms_since(owned.made)});
    alive.push_back(std::move(object));
  }
  for (const auto& [id, borrowed] : borrowed_) {
    const Lent count = counts[id];
    report.objects.push_back({borrowed.location, false, borrowed.handles, count.all,
                              count.in_flight, 0, ms_since(borrowed.since)});
  }
  return report;
}

}  // namespace runtime
