#include "runtime/head/group_requests.h"

#include <utility>

#include "runtime/core/nearest.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

namespace {

constexpr std::size_t kNameBytesMax = 1024;

}  // namespace

Status GroupRequests::check_new(const HeadCall& call, GroupSpec& spec) const {
  const ClusterTables& tables = context_.tables;
  if (spec.group.is_none()) return invalid_argument("a placement group needs an id");
  const bool may_create =
      tables.jobs().runs(call.job) || (spec.detached && tables.job_serves(call.job));
  if (!may_create) return invalid_argument("job " + call.job.short_hex() + " is not running");
  if (spec.name.size() > kNameBytesMax)
    return invalid_argument("the name of a placement group has " +
                            std::to_string(spec.name.size()) + " bytes, of at most 1024");
  if (spec.detached && spec.name.empty()) {
    return invalid_argument(
        describe(spec) +
        " is to be detached: give it a name, so that others can find and remove it");
  }
  const JobRecord* job = tables.jobs().find(call.job);
  if (spec.detached && spec.name_space.empty() && job && job->driver.name_space.empty()) {
    return invalid_argument(
        describe(spec) +
        " is to be detached: give it or its driver a namespace, so that other drivers can name it "
        "(GroupSpec::name_space, RuntimeOptions::name_space)");
  }
  spec.name_space = spec.name.empty() ? "" : context_.name_space(call, spec.name_space);
  if (const GroupState* other =
          spec.name.empty() ? nullptr : tables.groups().named(spec.name_space, spec.name)) {
    return invalid_argument("the name '" + spec.name + "' is taken by placement group " +
                            other->spec.group.short_hex() + " of job " + other->job.short_hex() +
                            " in namespace '" + spec.name_space + "'");
  }
  if (queue_.groups().size() >= context_.options.pending_max)
    return resource_exhausted(std::to_string(queue_.groups().size()) +
                              " placement groups wait already");
  return {};
}

void GroupRequests::serve(const HeadCall& call, control::CreateGroup& body,
                          ControlAnswerer answer) {
  const GroupId id = body.spec.group;
  // The same request again: its first answer was lost.
  if (const GroupState* known = context_.tables.groups().find(id)) {
    if (known->placed) return answer(ControlAnswer{*known});
    queue_.extend(id, call.deadline);
    return waiters_.add(id, call.deadline, std::move(answer));
  }
  if (call.has_begun)  // it had been added
    return answer(cancelled(describe(body.spec) + " was removed"));
  if (Status status = check_new(call, body.spec); !status.ok()) return answer(status);
  ledger_.note_begun(call, 0);
  context_.commit(command::AddGroup{call.job, std::move(body.spec)});
  waiters_.add(id, call.deadline + kAnswerGrace, std::move(answer));
  groups_.begin(id, call.deadline);
}

void GroupRequests::serve(const HeadCall&, control::RemoveGroup& body, ControlAnswerer answer) {
  const GroupState* group = context_.tables.groups().find(body.group);
  if (!group) return answer(no_such_group(body.group));
  groups_.drop(body.group, cancelled(describe(group->spec) + " was removed"));
  answer(ControlAnswer{});
  queue_.place_all();
}

void GroupRequests::serve(const HeadCall& call, control::QueryGroup& body, ControlAnswerer answer) {
  const ClusterTables& tables = context_.tables;
  const std::string space = context_.name_space(call, body.name_space);
  const GroupState* group = body.group.is_none() ? tables.groups().named(space, body.name)
                                                 : tables.groups().find(body.group);
  if (!group && !body.group.is_none()) return answer(no_such_group(body.group));
  if (!group) {
    std::vector<std::string> names;
    for (const auto& [id, other] : tables.groups().all()) {
      if (other.spec.name_space == space && !other.spec.name.empty())
        names.push_back(other.spec.name);
    }
    return answer(not_found("no placement group is named '" + body.name + "' in namespace '" +
                            space + "'" + did_you_mean(body.name, names)));
  }
  if (group->placed || !body.wait) return answer(ControlAnswer{*group});
  waiters_.add(group->spec.group, call.deadline, std::move(answer));
}

Status GroupRequests::no_such_group(GroupId group) const {
  std::vector<std::string> ids;
  for (const auto& [id, other] : context_.tables.groups().all()) ids.push_back(id.hex());
  return not_found("no placement group has the id " + group.hex() + did_you_mean(group.hex(), ids));
}

void GroupRequests::decided(GroupId id, const Status& status) {
  for (ControlAnswerer& answer : waiters_.take(id)) {
    if (status.ok())
      answer(ControlAnswer{*context_.tables.groups().find(id)});
    else
      answer(status);
  }
}

void GroupRequests::tick(Deadline now) {
  for (auto& [group, answer] : waiters_.expire(now)) {
    const GroupState* state = context_.tables.groups().find(group);
    answer(deadline_exceeded("placement group " + group.short_hex() + " is still not placed" +
                             (state ? ": " + state->pending_reason : "")));
  }
}

}  // namespace runtime
