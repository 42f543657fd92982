#include "runtime/control/object_info.h"

#include <algorithm>
#include <map>

namespace runtime {

namespace {

void merge(ObjectInfo& into, ObjectInfo&& from) {
  if (into.node.is_none()) into.node = from.node;
  into.size = std::max(into.size, from.size);
  if (into.place == ObjectPlace::kUnknown) into.place = from.place;
  // What the cluster has taken over may still have the process that made it.
  if (from.owner_pid != 0 || into.owner.empty()) {
    into.owner_node = from.owner_node;
    into.owner_pid = from.owner_pid;
    if (!from.owner.empty()) into.owner = std::move(from.owner);
  }
  into.age = std::max(into.age, from.age);
  into.handles += from.handles;
  into.lent += from.lent;
  into.in_flight += from.in_flight;
  into.held += from.held;
  into.readers += from.readers;
  for (ObjectBorrower& borrower : from.borrowers) into.borrowers.push_back(std::move(borrower));
  for (std::string& name : from.published) into.published.push_back(std::move(name));
  for (NodeId copy : from.copies) into.copies.push_back(copy);
}

}  // namespace

std::string_view to_string(ObjectPlace place) {
  switch (place) {
    case ObjectPlace::kMemory: return "memory";
    case ObjectPlace::kDisk: return "disk";
    case ObjectPlace::kHead: return "head";
    case ObjectPlace::kUnknown: break;
  }
  return "unknown";
}

bool lacks_owner(const ObjectInfo& object) {
  return object.owner.empty() && !object.borrowers.empty();
}

void settle_owners(ObjectList& now, const ObjectList& before) {
  std::map<ObjectId, const ObjectInfo*> known;
  for (const ObjectInfo& object : before.objects) known.emplace(object.id, &object);
  std::erase_if(now.objects, [&](ObjectInfo& object) {
    if (!lacks_owner(object)) return false;
    const auto earlier = known.find(object.id);
    if (earlier == known.end()) return true;
    object.owner = earlier->second->owner;
    object.owner_pid = earlier->second->owner_pid;
    object.owner_node = earlier->second->owner_node;
    return false;
  });
}

void merge(ObjectList& into, ObjectList from) {
  std::map<ObjectId, ObjectInfo> all;
  for (ObjectList* list : {&into, &from}) {
    for (ObjectInfo& object : list->objects) {
      auto [known, fresh] = all.try_emplace(object.id);
      if (fresh)
        known->second = std::move(object);
      else
        merge(known->second, std::move(object));
    }
  }
  into.objects.clear();
  for (auto& [id, object] : all) into.objects.push_back(std::move(object));
  for (StoreInfo& store : from.stores) into.stores.push_back(store);
  for (std::string& trouble : from.troubles) into.troubles.push_back(std::move(trouble));
  into.truncated = into.truncated || from.truncated;
}

}  // namespace runtime
