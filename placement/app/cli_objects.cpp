#include "placement/app/cli_objects.h"

#include "placement/app/cli_query.h"
#include "runtime/control/cluster_client.h"
#include "runtime/core/printable_text.h"

namespace placement {

namespace {

using Json = nlohmann::ordered_json;

std::string hex_or_empty(runtime::NodeId node) { return node.is_none() ? "" : node.hex(); }

// The keys below are what scripts rely on: add, never rename.

Json object_json(const runtime::ObjectInfo& object) {
  Json borrowers = Json::array(), copies = Json::array();
  for (const runtime::ObjectBorrower& borrower : object.borrowers) {
    borrowers.push_back({{"node", borrower.node.hex()},
                         {"pid", borrower.pid},
                         {"name", borrower.name},
                         {"handles", borrower.handles}});
  }
  for (runtime::NodeId copy : object.copies) copies.push_back(copy.hex());
  return Json{{"id", object.id.is_none() ? "" : object.id.hex()},
              {"bytes", object.size},
              {"node", hex_or_empty(object.node)},
              {"place", std::string(to_string(object.place))},
              {"owner", object.owner},
              {"owner_pid", object.owner_pid},
              {"owner_node", hex_or_empty(object.owner_node)},
              {"age_ms", object.age.count()},
              {"handles", object.handles},
              {"lent", object.lent},
              {"in_flight", object.in_flight},
              {"held", object.held},
              {"readers", object.readers},
              {"borrowers", borrowers},
              {"published", object.published},
              {"copies", copies}};
}

Json object_json(const runtime::StoreInfo& store) {
  return Json{{"node", store.node.hex()},
              {"capacity_bytes", store.capacity_bytes},
              {"leased_bytes", store.leased_bytes},
              {"orphaned_bytes", store.orphaned_bytes},
              {"replica_bytes", store.replica_bytes},
              {"published_bytes", store.published_bytes},
              {"spilled_bytes", store.spilled_bytes},
              {"sent_bytes", store.sent_bytes},
              {"fetched_bytes", store.fetched_bytes},
              {"pins", store.pins},
              {"borrows", store.borrows},
              {"inline_objects", store.inline_objects}};
}

/// "2 handles, lent 1 (1 in flight), borrowed by Counter 7f3a0011 (pid 12), weights@3"
std::string keepers(const runtime::ObjectInfo& object) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (object.handles > 0)
    add(std::to_string(object.handles) + (object.handles == 1 ? " handle" : " handles"));
  if (object.lent > 0)
    add("lent " + std::to_string(object.lent) +
        (object.in_flight > 0 ? " (" + std::to_string(object.in_flight) + " in flight)" : ""));
  if (object.held > 0) add("held for borrowers");
  if (object.readers > 0)
    add(std::to_string(object.readers) + (object.readers == 1 ? " reader" : " readers"));
  for (const runtime::ObjectBorrower& borrower : object.borrowers)
    add("borrowed by " + borrower.name + " (pid " + std::to_string(borrower.pid) + ")");
  for (const std::string& name : object.published) add("published as " + name);
  if (!object.copies.empty())
    add(std::to_string(object.copies.size()) + (object.copies.size() == 1 ? " copy" : " copies"));
  return text;
}

/// Of an object without an owner, why it has none.
const char* missing_owner(const runtime::ObjectInfo& object, const runtime::ObjectList& list) {
  if (!list.troubles.empty()) return "owner unknown, not all have answered";
  // Copies in other nodes' stores stay for a while after the object itself.
  const bool is_wanted =
      !object.borrowers.empty() || !object.published.empty() || object.readers > 0;
  return is_wanted ? "owner gone" : "no references";
}

void print_objects(const runtime::ObjectList& list) {
  for (const runtime::ObjectInfo& object : list.objects) {
    const std::string owner = object.owner_pid != 0
                                  ? object.owner + " (pid " + std::to_string(object.owner_pid) + ")"
                                  : object.owner;
    say("  %s  %10.3f MiB  node %s  %-7s  %6.1f s  %s: %s\n",
        object.id.is_none() ? "-                               " : object.id.hex().c_str(),
        static_cast<double>(object.size) / (1 << 20),
        object.node.is_none() ? "-       " : object.node.short_hex().c_str(),
        std::string(to_string(object.place)).c_str(),
        static_cast<double>(object.age.count()) / 1000,
        owner.empty() ? missing_owner(object, list) : owner.c_str(), keepers(object).c_str());
  }
  if (list.truncated)
    say("  (and more: a node names at most %zu)\n", runtime::ObjectList::kObjectsMax);
  for (const runtime::StoreInfo& store : list.stores) {
    const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    say("store of node %s: %.1f of %.1f MiB with processes, %.1f published, %.1f copies, %.1f kept "
        "for readers, %.1f on disk; %llu small objects in processes\n",
        store.node.short_hex().c_str(), mib(store.leased_bytes), mib(store.capacity_bytes),
        mib(store.published_bytes), mib(store.replica_bytes), mib(store.orphaned_bytes),
        mib(store.spilled_bytes), static_cast<unsigned long long>(store.inline_objects));
  }
}

}  // namespace

int list_objects_command(const std::string& address, bool json, const Filters& filters) {
  if (runtime::Status status =
          check_filters(filters, object_json(runtime::ObjectInfo()), "objects");
      !status.ok())
    return fail(status);
  auto list = ask_cluster<runtime::ObjectList>(
      address, [](runtime::NodeClient& client, runtime::Deadline deadline, auto done) {
        runtime::ClusterClient(client).list_objects(deadline, done);
      });
  if (!list.ok()) return fail(list.status());
  std::erase_if(list->objects, [&](const runtime::ObjectInfo& object) {
    return !matches(object_json(object), filters);
  });
  for (const std::string& trouble : list->troubles)
    std::fprintf(stderr, "%s\n", runtime::printable_text(trouble).c_str());
  const int code = list->troubles.empty() ? 0 : 1;
  if (!json) return print_objects(*list), code;
  Json objects = Json::array(), stores = Json::array();
  for (const runtime::ObjectInfo& object : list->objects) objects.push_back(object_json(object));
  for (const runtime::StoreInfo& store : list->stores) stores.push_back(object_json(store));
  print_json(Json{{"objects", objects},
                  {"stores", stores},
                  {"truncated", list->truncated},
                  {"troubles", list->troubles}});
  return code;
}

}  // namespace placement
