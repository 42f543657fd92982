// The head's part in objects: published versions, and the list of everything.
#include <algorithm>
#include <map>
#include <memory>

#include "runtime/core/log.h"
#include "runtime/head/head.h"

namespace runtime {

namespace {

constexpr std::chrono::seconds kDropTimeout{30};

std::uint64_t size_of(const PublishedValue& value) {
  if (const auto* bytes = std::get_if<std::string>(&value)) return bytes->size();
  const auto& copies = std::get<std::vector<ObjectLocation>>(value);
  return copies.empty() ? 0 : copies.front().size;
}

std::string quoted(const PublishedTable::Name& name) {
  return "'" + name.second + "' in namespace " + name.first;
}

}  // namespace

void Head::on(const Call& call, ObjectControl& body, ControlAnswerer answer) {
  std::visit([&](auto& request) { serve(call, request, std::move(answer)); }, body);
}

void Head::serve(const Call&, control::AdoptObject&, ControlAnswerer answer) {
  answer(unimplemented("the head keeps no objects of its own"));
}
void Head::serve(const Call&, control::DropObject&, ControlAnswerer answer) {
  answer(unimplemented("the head keeps no objects of its own"));
}

// -- Publishing

/// A version that its nodes are being asked to keep.
struct Head::Publishing {
  PublishedTable::Name name;
  std::uint64_t version;
  std::uint32_t keep_last;
  std::string type;
  ControlAnswerer answer;
  std::vector<ObjectLocation> copies;
  std::size_t outstanding = 0;
  Status failure;
};

Status Head::check_version(const PublishedTable::Name& name, std::uint64_t version) const {
  std::uint64_t latest = 0;
  if (const auto* versions = tables_.published().find(name)) latest = versions->rbegin()->first;
  if (auto pending = publishing_.find(name); pending != publishing_.end())
    latest = std::max(latest, pending->second);
  if (version > latest) return {};
  return invalid_argument("version " + std::to_string(version) + " of " + quoted(name) +
                          " is not larger than the latest, " + std::to_string(latest));
}

void Head::serve(const Call& call, control::Publish& body, ControlAnswerer answer) {
  const PublishedTable::Name name(name_space(call, body.name_space), body.name);
  if (body.name.empty() || body.name.size() > options_.key_bytes_max) {
    return answer(invalid_argument("the name of a published object has 1 to " +
                                   std::to_string(options_.key_bytes_max) + " bytes, not " +
                                   std::to_string(body.name.size())));
  }
  if (name.first.size() > options_.key_bytes_max || body.type.size() > options_.key_bytes_max) {
    return answer(invalid_argument("publishing '" + body.name + "': its namespace has " +
                                   std::to_string(name.first.size()) + " bytes and its type " +
                                   std::to_string(body.type.size()) + "; at most " +
                                   std::to_string(options_.key_bytes_max) + " each fit"));
  }
  if (body.keep_last < 1 || body.copies < 1)
    return answer(invalid_argument("publishing keeps at least one version, in at least one copy"));
  if (Status status = check_version(name, body.version); !status.ok()) return answer(status);
  if (auto* bytes = std::get_if<std::string>(&body.value)) {
    if (bytes->size() > options_.value_bytes_max) {
      return answer(invalid_argument("a published value of " + std::to_string(bytes->size()) +
                                     " bytes has to lie in a node's store"));
    }
    add_published(name, body.version, body.keep_last, std::move(body.value), std::move(body.type));
    return answer(ControlAnswer{});
  }
  auto& given = std::get<std::vector<ObjectLocation>>(body.value);
  if (given.size() != 1)
    return answer(invalid_argument("a published object has one place to begin with"));
  if (!tables_.nodes().contains(given.front().node))
    return answer(object_lost("node " + given.front().node.short_hex() + " has left the cluster"));
  const std::size_t staying = tables_.nodes().size() - drains_.size();
  if (body.copies > staying) {
    return answer(resource_exhausted(std::to_string(body.copies) +
                                     " copies asked, and the cluster has " +
                                     std::to_string(staying) + " nodes" +
                                     (drains_.empty() ? "" : " that are not being drained")));
  }
  auto publishing = std::make_shared<Publishing>(Publishing{
      name, body.version, body.keep_last, std::move(body.type), std::move(answer), {}, 0, {}});
  publishing_[name] = body.version;
  std::vector<NodeId> nodes;
  if (!drains_.contains(given.front().node)) nodes.push_back(given.front().node);
  for (const auto& [id, info] : tables_.nodes()) {
    if (nodes.size() < body.copies && id != given.front().node && !drains_.contains(id))
      nodes.push_back(id);
  }
  publishing->outstanding = nodes.size();
  for (NodeId node : nodes) {
    ControlRequest request{
        call.job, std::chrono::duration_cast<std::chrono::milliseconds>(call.deadline - now_()),
        ObjectControl{control::AdoptObject{given.front()}}};
    links_.request(node, std::move(request), [this, publishing](Result<ControlAnswer> adopted) {
      on_adopted(*publishing, std::move(adopted));
    });
  }
}

void Head::on_adopted(Publishing& publishing, Result<ControlAnswer> adopted) {
  auto* objects = adopted.ok() ? std::get_if<ObjectControlAnswer>(&*adopted) : nullptr;
  auto* location = objects ? std::get_if<ObjectLocation>(objects) : nullptr;
  if (location)
    publishing.copies.push_back(std::move(*location));
  else if (publishing.failure.ok())
    publishing.failure = adopted.ok()
                             ? internal_error("a node answered something else than was asked")
                             : adopted.status();
  if (--publishing.outstanding > 0) return;
  if (auto pending = publishing_.find(publishing.name);
      pending != publishing_.end() && pending->second == publishing.version)
    publishing_.erase(pending);
  // A node may have left, or a larger version been published meanwhile.
  std::erase_if(publishing.copies,
                [&](const ObjectLocation& copy) { return !tables_.nodes().contains(copy.node); });
  if (publishing.failure.ok() && publishing.copies.empty())
    publishing.failure = object_lost("the nodes that were to keep it have left the cluster");
  if (publishing.failure.ok())
    publishing.failure = check_version(publishing.name, publishing.version);
  if (!publishing.failure.ok()) {
    drop_copies(publishing.copies);
    return publishing.answer(publishing.failure);
  }
  add_published(publishing.name, publishing.version, publishing.keep_last,
                std::move(publishing.copies), std::move(publishing.type));
  publishing.answer(ControlAnswer{});
}

void Head::add_published(const PublishedTable::Name& name, std::uint64_t version,
                         std::uint32_t keep_last, PublishedValue value, std::string type) {
  commit(command::Publish{name, version, std::move(value), std::move(type)});
  while (tables_.published().find(name)->size() > keep_last)
    drop_published(name, tables_.published().find(name)->begin()->first);
  for (PublishedWaiter& waiter : published_waiters_.take(name))
    find_published(name, std::move(waiter));
}

void Head::drop_published(const PublishedTable::Name& name, std::uint64_t version) {
  const PublishedValue value = tables_.published().find(name)->at(version).value;
  commit(command::Unpublish{name, version});
  if (const auto* copies = std::get_if<std::vector<ObjectLocation>>(&value)) drop_copies(*copies);
}

void Head::drop_copies(const std::vector<ObjectLocation>& copies) {
  for (const ObjectLocation& copy : copies) {
    if (!tables_.nodes().contains(copy.node)) continue;
    links_.request(copy.node,
                   ControlRequest{{}, kDropTimeout, ObjectControl{control::DropObject{copy}}},
                   [](Result<ControlAnswer>) {});
  }
}

void Head::drop_private_names(JobId job) {
  // Nobody else knows the namespace that a job has to itself.
  if (tables_.job_serves(job) || tables_.name_space(job) != tables_.private_name_space(job)) return;
  for (const auto& name : tables_.published().in(tables_.private_name_space(job))) {
    while (const auto* versions = tables_.published().find(name))
      drop_published(name, versions->begin()->first);
  }
}

void Head::serve(const Call& call, control::Unpublish& body, ControlAnswerer answer) {
  const PublishedTable::Name name(name_space(call, body.name_space), body.name);
  const auto* versions = tables_.published().find(name);
  if (!versions || (body.version != 0 && !versions->contains(body.version))) {
    return answer(
        not_found((body.version == 0 ? "nothing" : "no version " + std::to_string(body.version)) +
                  " is published as " + quoted(name)));
  }
  if (body.version != 0) {
    drop_published(name, body.version);
  } else {
    while ((versions = tables_.published().find(name)) != nullptr)
      drop_published(name, versions->begin()->first);
  }
  answer(ControlAnswer{});
}

// -- Finding

void Head::serve(const Call& call, control::FindPublished& body, ControlAnswerer answer) {
  const PublishedTable::Name name(name_space(call, body.name_space), body.name);
  find_published(name, PublishedWaiter{std::move(body), call.deadline, std::move(answer)});
}

void Head::find_published(const PublishedTable::Name& name, PublishedWaiter waiter) {
  const auto* versions = tables_.published().find(name);
  const std::uint64_t wanted = waiter.request.version;
  const bool is_there = versions && (waiter.request.exactly ? versions->contains(wanted)
                                                            : versions->rbegin()->first >= wanted);
  const bool was_there = versions && waiter.request.exactly && versions->rbegin()->first > wanted;
  if (!is_there && waiter.request.wait && !was_there) {
    const Deadline deadline = waiter.deadline;
    return published_waiters_.add(name, deadline, std::move(waiter));
  }
  if (!versions) return waiter.answer(not_found("nothing is published as " + quoted(name)));
  if (!is_there) {
    return waiter.answer(not_found("of " + quoted(name) + " there are versions " +
                                   std::to_string(versions->begin()->first) + " to " +
                                   std::to_string(versions->rbegin()->first) + ", not " +
                                   (was_there ? "" : "yet ") + std::to_string(wanted)));
  }
  const auto& [version, published] =
      waiter.request.exactly ? *versions->find(wanted) : *versions->rbegin();
  if (!published.loss.empty())
    return waiter.answer(object_lost("version " + std::to_string(version) + " of " + quoted(name) +
                                     " is lost: " + published.loss));
  waiter.answer(ControlAnswer{
      ObjectControlAnswer{PublishedObject{name.second, version, published.value, published.type}}});
}

// -- For people

void Head::serve(const Call& call, control::ListObjects&, ControlAnswerer answer) {
  list_objects(call.deadline, nullptr, std::move(answer));
}

void Head::list_objects(Deadline deadline, std::shared_ptr<const ObjectList> before,
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
    finish_list(asking->list);
    ObjectList& list = asking->list;
    if (!before && list.troubles.empty() &&
        std::any_of(list.objects.begin(), list.objects.end(), lacks_owner)) {
      return list_objects(deadline, std::make_shared<const ObjectList>(std::move(list)),
                          std::move(asking->answer));
    }
    if (before) settle_owners(list, *before);
    asking->answer(ControlAnswer{ObjectControlAnswer{std::move(asking->list)}});
  };
  for (const auto& [node, info] : tables_.nodes()) {
    ++asking->outstanding;
    // In time for the others' answers to go out when one node is silent.
    const auto patience =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now_()) / 2;
    ControlRequest request{{}, patience, ObjectControl{control::ListObjects{}}};
    const std::string name = "node " + node.short_hex() + " at " + info.address;
    links_.request(node, std::move(request), [asking, end, name](Result<ControlAnswer> reply) {
      auto* objects = reply.ok() ? std::get_if<ObjectControlAnswer>(&*reply) : nullptr;
      if (auto* list = objects ? std::get_if<ObjectList>(objects) : nullptr)
        merge(asking->list, std::move(*list));
      else
        asking->list.troubles.push_back(name + " has not answered: " + reply.status().message());
      end();
    });
  }
  end();
}

/// Adds what only the head knows: the names that things are published under, and which actors the
/// processes are.
void Head::finish_list(ObjectList& list) const {
  ObjectList published;
  for (const auto& [name, versions] : tables_.published().all()) {
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
  for (const auto& [id, record] : tables_.actors()) {
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
