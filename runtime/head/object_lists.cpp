#include "runtime/head/object_lists.h"

#include <algorithm>
#include <map>
#include <utility>

namespace runtime {

namespace {

std::uint64_t size_of(const PublishedValue& value) {
  if (const auto* bytes = std::get_if<std::string>(&value)) return bytes->size();
  const auto& copies = std::get<std::vector<ObjectLocation>>(value);
  return copies.empty() ? 0 : copies.front().size;
}

}  // namespace

void ObjectLists::list(Deadline deadline, std::shared_ptr<const ObjectList> before,
                       ControlAnswerer answer) {
  struct Asking {
    ControlAnswerer answer;
    ObjectList list;
    std::size_t outstanding = 1;
  };
  auto asking = std::make_shared<Asking>();
  asking->answer = std::move(answer);
  auto end = [this, asking, deadline, before] {
    if (--asking->outstanding > 0) return;
    finish(asking->list);
    ObjectList& list = asking->list;
    if (!before && list.troubles.empty() &&
        std::any_of(list.objects.begin(), list.objects.end(), lacks_owner)) {
      return this->list(deadline, std::make_shared<const ObjectList>(std::move(list)),
                        std::move(asking->answer));
    }
    if (before) settle_owners(list, *before);
    asking->answer(ControlAnswer{ObjectControlAnswer{std::move(asking->list)}});
  };
  for (const auto& [node, info] : context_.tables.nodes().all()) {
    ++asking->outstanding;
    // In time for the others' answers to go out when one node is silent.
    const auto patience =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - context_.now()) / 2;
    ControlRequest request{{}, patience, ObjectControl{control::ListObjects{}}};
    const std::string name = "node " + node.short_hex() + " at " + info.address;
    context_.links.request(
        node, std::move(request), [asking, end, name](Result<ControlAnswer> reply) {
          auto* objects = reply.ok() ? std::get_if<ObjectControlAnswer>(&*reply) : nullptr;
          if (auto* list = objects ? std::get_if<ObjectList>(objects) : nullptr)
            merge(asking->list, std::move(*list));
          else
            asking->list.troubles.push_back(
                name + (reply.ok() ? " has answered with no list of objects"
                                   : " has not answered: " + reply.status().message()));
          end();
        });
  }
  end();
}

/// Adds what only the head knows: the names that things are published under, and which actors the
/// processes are.
void ObjectLists::finish(ObjectList& list) const {
  ObjectList published;
  for (const auto& [name, versions] : context_.tables.published().all()) {
    for (const auto& [version, record] : versions) {
      const std::string text = name.first + "/" + name.second + "@" + std::to_string(version);
      const auto* copies = std::get_if<std::vector<ObjectLocation>>(&record.value);
      if (copies && copies->empty()) continue;
      ObjectInfo object;
      object.size = size_of(record.value);
      object.owner = "cluster";
      object.published.push_back(text);
      if (copies) {
        object.id = copies->front().id;
        object.node = copies->front().node;
      } else {
        object.place = ObjectPlace::kHead;
        list.objects.push_back(std::move(object));  // it has no id that others know
        continue;
      }
      published.objects.push_back(std::move(object));
    }
  }
  std::vector<ObjectInfo> at_head;
  std::erase_if(list.objects, [&](ObjectInfo& object) {
    if (object.place != ObjectPlace::kHead) return false;
    at_head.push_back(std::move(object));
    return true;
  });
  merge(list, std::move(published));
  for (ObjectInfo& object : at_head) list.objects.push_back(std::move(object));
  std::map<std::pair<NodeId, std::int32_t>, std::string> actors;
  for (const auto& [id, record] : context_.tables.actors().all()) {
    if (record.phase != ActorPhase::kAlive) continue;
    std::string& known = actors[{record.node, record.address.pid}];
    known = known.empty() ? record.spec.class_name + " " + id.short_hex() : "several actors";
  }
  const auto rename = [&](NodeId node, std::int32_t pid, std::string& name) {
    if (auto actor = actors.find({node, pid}); actor != actors.end()) name = actor->second;
  };
  for (ObjectInfo& object : list.objects) {
    if (object.owner_pid != 0) rename(object.owner_node, object.owner_pid, object.owner);
    for (ObjectBorrower& borrower : object.borrowers)
      rename(borrower.node, borrower.pid, borrower.name);
  }
}

}  // namespace runtime
