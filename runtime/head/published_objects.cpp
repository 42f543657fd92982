#include "runtime/head/published_objects.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace runtime {

namespace {

constexpr std::chrono::seconds kDropTimeout{30};

std::string quoted(const PublishedTable::Name& name) {
  return "'" + name.second + "' in namespace " + name.first;
}

}  // namespace

/// A version that its nodes are being asked to keep.
struct PublishedObjects::Publishing {
  PublishedTable::Name name;
  std::uint64_t version;
  std::uint32_t keep_last;
  std::string type;
  ControlAnswerer answer;
  std::vector<ObjectLocation> copies;
  std::size_t outstanding = 0;
  Status failure;
};

Status PublishedObjects::check_version(const PublishedTable::Name& name,
                                       std::uint64_t version) const {
  std::uint64_t latest = 0;
  if (const auto* versions = context_.tables.published().find(name))
    latest = versions->rbegin()->first;
  if (auto pending = publishing_.find(name); pending != publishing_.end())
    latest = std::max(latest, pending->second);
  if (version > latest) return {};
  return invalid_argument("version " + std::to_string(version) + " of " + quoted(name) +
                          " is not larger than the latest, " + std::to_string(latest));
}

void PublishedObjects::serve(const HeadCall& call, control::Publish& body, ControlAnswerer answer) {
  const PublishedTable::Name name(context_.name_space(call, body.name_space), body.name);
  if (body.name.empty() || body.name.size() > context_.options.key_bytes_max) {
    return answer(invalid_argument("the name of a published object has 1 to " +
                                   std::to_string(context_.options.key_bytes_max) + " bytes, not " +
                                   std::to_string(body.name.size())));
  }
  if (name.first.size() > context_.options.key_bytes_max ||
      body.type.size() > context_.options.key_bytes_max) {
    return answer(invalid_argument("publishing '" + body.name + "': its namespace has " +
                                   std::to_string(name.first.size()) + " bytes and its type " +
                                   std::to_string(body.type.size()) + "; at most " +
                                   std::to_string(context_.options.key_bytes_max) + " each fit"));
  }
  if (body.keep_last < 1 || body.copies < 1)
    return answer(invalid_argument("publishing keeps at least one version, in at least one copy"));
  if (Status status = check_version(name, body.version); !status.ok()) return answer(status);
  if (auto* bytes = std::get_if<std::string>(&body.value)) {
    if (bytes->size() > context_.options.value_bytes_max) {
      return answer(invalid_argument("a published value of " + std::to_string(bytes->size()) +
                                     " bytes has to lie in a node's store"));
    }
    add(name, body.version, body.keep_last, std::move(body.value), std::move(body.type));
    return answer(ControlAnswer{});
  }
  auto& given = std::get<std::vector<ObjectLocation>>(body.value);
  if (given.size() != 1)
    return answer(invalid_argument("a published object has one place to begin with"));
  if (!context_.tables.nodes().contains(given.front().node))
    return answer(object_lost("node " + given.front().node.short_hex() + " has left the cluster"));
  const std::vector<NodeId> staying = nodes_that_stay(given.front().node);
  if (body.copies > staying.size()) {
    return answer(resource_exhausted(
        std::to_string(body.copies) + " copies asked, and the cluster has " +
        std::to_string(staying.size()) + " nodes" +
        (staying.size() == context_.tables.nodes().all().size() ? ""
                                                                : " that are not being drained")));
  }
  auto publishing = std::make_shared<Publishing>(Publishing{
      name, body.version, body.keep_last, std::move(body.type), std::move(answer), {}, 0, {}});
  publishing_[name] = body.version;
  const std::span nodes = std::span(staying).first(body.copies);
  publishing->outstanding = nodes.size();
  for (NodeId node : nodes) {
    ControlRequest request{call.job, context_.left(call),
                           ObjectControl{control::AdoptObject{given.front()}}};
    context_.links.request(node, std::move(request),
                           [this, publishing](Result<ControlAnswer> adopted) {
                             on_adopted(*publishing, std::move(adopted));
                           });
  }
}

void PublishedObjects::on_adopted(Publishing& publishing, Result<ControlAnswer> adopted) {
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
  std::erase_if(publishing.copies, [&](const ObjectLocation& copy) {
    return !context_.tables.nodes().contains(copy.node);
  });
  if (publishing.failure.ok() && publishing.copies.empty())
    publishing.failure = object_lost("the nodes that were to keep it have left the cluster");
  if (publishing.failure.ok())
    publishing.failure = check_version(publishing.name, publishing.version);
  if (!publishing.failure.ok()) {
    drop_copies(publishing.copies);
    return publishing.answer(publishing.failure);
  }
  add(publishing.name, publishing.version, publishing.keep_last, std::move(publishing.copies),
      std::move(publishing.type));
  publishing.answer(ControlAnswer{});
}

void PublishedObjects::add(const PublishedTable::Name& name, std::uint64_t version,
                           std::uint32_t keep_last, PublishedValue value, std::string type) {
  context_.commit(command::Publish{name, version, std::move(value), std::move(type)});
  while (context_.tables.published().find(name)->size() > keep_last)
    drop(name, context_.tables.published().find(name)->begin()->first);
  for (Waiter& waiter : waiters_.take(name)) find(name, std::move(waiter));
}

void PublishedObjects::drop(const PublishedTable::Name& name, std::uint64_t version) {
  const PublishedValue value = context_.tables.published().find(name)->at(version).value;
  context_.commit(command::Unpublish{name, version});
  if (const auto* copies = std::get_if<std::vector<ObjectLocation>>(&value)) drop_copies(*copies);
}

void PublishedObjects::drop_copies(const std::vector<ObjectLocation>& copies) {
  for (const ObjectLocation& copy : copies) {
    if (!context_.tables.nodes().contains(copy.node)) continue;
    context_.links.request(
        copy.node, ControlRequest{{}, kDropTimeout, ObjectControl{control::DropObject{copy}}},
        [](Result<ControlAnswer>) {});
  }
}

void PublishedObjects::drop_private_names(JobId job) {
  // Only the job knows the namespace that it has to itself.
  if (context_.tables.job_serves(job) ||
      context_.tables.jobs().name_space(job) != context_.tables.jobs().private_name_space(job))
    return;
  for (const auto& name :
       context_.tables.published().in(context_.tables.jobs().private_name_space(job))) {
    while (const auto* versions = context_.tables.published().find(name))
      drop(name, versions->begin()->first);
  }
}

void PublishedObjects::serve(const HeadCall& call, control::Unpublish& body,
                             ControlAnswerer answer) {
  const PublishedTable::Name name(context_.name_space(call, body.name_space), body.name);
  const auto* versions = context_.tables.published().find(name);
  if (!versions || (body.version != 0 && !versions->contains(body.version))) {
    return answer(
        not_found((body.version == 0 ? "nothing" : "no version " + std::to_string(body.version)) +
                  " is published as " + quoted(name)));
  }
  if (body.version != 0) {
    drop(name, body.version);
  } else {
    while ((versions = context_.tables.published().find(name)) != nullptr)
      drop(name, versions->begin()->first);
  }
  answer(ControlAnswer{});
}

// -- Finding

void PublishedObjects::serve(const HeadCall& call, control::FindPublished& body,
                             ControlAnswerer answer) {
  const PublishedTable::Name name(context_.name_space(call, body.name_space), body.name);
  find(name, Waiter{std::move(body), call.deadline, std::move(answer)});
}

void PublishedObjects::find(const PublishedTable::Name& name, Waiter waiter) {
  const auto* versions = context_.tables.published().find(name);
  const std::uint64_t wanted = waiter.request.version;
  const bool is_there = versions && (waiter.request.exactly ? versions->contains(wanted)
                                                            : versions->rbegin()->first >= wanted);
  const bool was_there = versions && waiter.request.exactly && versions->rbegin()->first > wanted;
  if (!is_there && waiter.request.wait && !was_there) {
    const Deadline deadline = waiter.deadline;
    return waiters_.add(name, deadline, std::move(waiter));
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

void PublishedObjects::tick(Deadline now) {
  for (auto& [name, waiter] : waiters_.expire(now)) {
    waiter.answer(deadline_exceeded(
        "no process has published '" + name.second + "' in namespace " + name.first +
        (waiter.request.version > 1 ? " in version " + std::to_string(waiter.request.version)
                                    : "")));
  }
}

/// Those that are not about to leave; `first` before the others.
std::vector<NodeId> PublishedObjects::nodes_that_stay(NodeId first) const {
  std::vector<NodeId> nodes;
  for (const auto& [id, info] : context_.tables.nodes().all()) {
    if (!info.drain) nodes.push_back(id);
  }
  std::stable_partition(nodes.begin(), nodes.end(), [&](NodeId node) { return node == first; });
  return nodes;
}

}  // namespace runtime
