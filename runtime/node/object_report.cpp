#include "runtime/node/object_report.h"

#include <map>
#include <string>

namespace runtime {

namespace {

std::string client_name(Role role, const WorkerId& worker) {
  return role == Role::kDriver ? "driver" : "worker " + worker.short_hex();
}

StoreInfo info_of(NodeId node, const StoreList& store) {
  const ObjectStoreStats& stats = store.stats;
  StoreInfo info;
  for (const auto& process : store.processes) info.inline_objects += process.report.inline_objects;
  info.node = node;
  info.capacity_bytes = stats.capacity_bytes;
  info.leased_bytes = stats.leased_bytes;
  info.orphaned_bytes = stats.orphaned_bytes;
  info.replica_bytes = stats.replica_bytes;
  info.published_bytes = stats.adopted_bytes;
  info.spilled_bytes = stats.spilled_bytes;
  info.sent_bytes = stats.sent_bytes;
  info.fetched_bytes = stats.fetched_bytes;
  info.pins = stats.pins;
  info.borrows = stats.borrows;
  return info;
}

std::string silence_of(const StoreList::Process& silent, NodeId node) {
  return client_name(silent.role, silent.worker) + " (pid " + std::to_string(silent.pid) +
         ") on node " + node.short_hex() +
         " does not answer: stopped, or busy for seconds (starling list workers)";
}

}  // namespace

ObjectList object_list(NodeId node, const StoreList& store) {
  std::map<ObjectId, ObjectInfo> all;
  std::map<ObjectId, StoreList::Process> holders;  // of their memory
  const auto object_at = [&](const ObjectLocation& location) -> ObjectInfo& {
    auto [object, fresh] = all.try_emplace(location.id);
    if (!fresh) return object->second;
    object->second.id = location.id;
    object->second.node = location.node;
    object->second.size = location.size;
    if (auto extent = store.extents.find(location.extent);
        location.node == node && extent != store.extents.end()) {
      object->second.place = extent->second.resident ? ObjectPlace::kMemory : ObjectPlace::kDisk;
      object->second.readers = static_cast<std::uint32_t>(extent->second.pins);
      if (extent->second.holder.pid != 0) holders[location.id] = extent->second.holder;
    }
    return object->second;
  };
  ObjectList list;
  for (const auto& process : store.processes) {
    const std::string name = client_name(process.role, process.worker);
    for (const auto& said : process.report.objects) {
      if (all.size() >= ObjectList::kObjectsMax && !all.contains(said.location.id)) {
        list.truncated = true;
        continue;
      }
      ObjectInfo& object = object_at(said.location);
      if (said.owned) {
        object.owner_node = node;
        object.owner_pid = process.pid;
        object.owner = name;
        object.age = std::chrono::milliseconds(said.age_ms);
        object.handles += said.handles;
        object.lent += said.lent;
        object.held += said.held;
      } else {
        object.borrowers.push_back({node, process.pid, said.handles, name});
      }
      object.in_flight += said.in_flight;
    }
  }
  // An owner that has not answered, or had not made the object yet when it did.
  for (const auto& [id, holder] : holders) {
    ObjectInfo& object = all[id];
    if (!object.owner.empty() || (holder.role != Role::kDriver && holder.role != Role::kWorker))
      continue;
    object.owner_node = node;
    object.owner_pid = holder.pid;
    object.owner = client_name(holder.role, holder.worker);
  }
  for (const StoreList::Process& silent : store.silent)
    list.troubles.push_back(silence_of(silent, node));
  for (const ObjectLocation& location : store.adopted) {
    if (ObjectInfo& object = object_at(location); object.owner.empty()) object.owner = "cluster";
  }
  for (const ObjectLocation& location : store.copies) {
    ObjectInfo& object = object_at(location);
    // The copy's own place says nothing about where the object is.
    if (object.node == node && object.owner.empty()) {
      object.node = NodeId();
      object.place = ObjectPlace::kUnknown;
    }
    object.copies.push_back(node);
  }
  for (auto& [id, object] : all) list.objects.push_back(std::move(object));
  list.stores.push_back(info_of(node, store));
  return list;
}

}  // namespace runtime
