#include "runtime/actor/published.h"

#include <algorithm>
#include <utility>

#include "runtime/actor/process.h"
#include "runtime/actor/stored_object.h"

namespace runtime::published_detail {

namespace {

// A version may be dropped between the head's answer and the reader's word that it has it; then there is a newer one.
constexpr int kTriesMax = 10;

/// One question, asked again while what was found is gone already.
struct Search : std::enable_shared_from_this<Search> {
  std::shared_ptr<Process> process;
  control::FindPublished request;
  Deadline deadline;
  std::function<void(Result<Found>)> done;
  int tries = 0;

  void ask() {
    ++tries;
    process->node().find_published(request, deadline, [self = shared_from_this()](Result<PublishedObject> found) {
      if (!found.ok()) return self->done(found.status());
      self->on_found(std::move(*found));
    });
  }

  void on_found(PublishedObject found) {
    if (auto* bytes = std::get_if<std::string>(&found.value)) {
      ObjectValue value;
      value.bytes = Buffer::copy_of(*bytes);
      return done(Found{found.version, ObjectState::ready(process, std::move(value))});
    }
    auto& copies = std::get<std::vector<ObjectLocation>>(found.value);
    if (copies.empty()) return done(internal_error("the head has named no place of '" + found.name + "'"));
    auto here = std::find_if(copies.begin(), copies.end(), [&](const ObjectLocation& copy) { return copy.node == process->node().node_id(); });
    const ObjectLocation location = here == copies.end() ? copies.front() : *here;
    process->objects().borrow_and_confirm(location, deadline, [self = shared_from_this(), location, version = found.version](const Status& status) {
      // Dropped, it says that this process does not have it after all.
      auto stored = self->process->adopt_borrow(location);
      if (status.code() == ErrorCode::kObjectLost && !self->request.exactly && self->tries < kTriesMax) return self->ask();
      if (!status.ok()) return self->done(status);
      ObjectValue value;
      value.stored = std::move(stored);
      self->done(Found{version, ObjectState::ready(self->process, std::move(value))});
    });
  }
};

}  // namespace

Status publish(const std::shared_ptr<Process>& process, const std::string& name, std::uint64_t version, const ObjectStatePtr& object,
               const PublishOptions& options, Deadline deadline) {
  if (!object) return invalid_argument("publish of an ObjectRef that refers to nothing");
  if (!object->wait(deadline)) return deadline_exceeded("the object to be published as '" + name + "' was not there in time");
  if (!object->failure().ok()) return object->failure().with_context("the object to be published as '" + name + "'");
  const ObjectValue& value = object->value();
  if (!value.refs.empty()) {
    return invalid_argument("'" + name + "' has references to other objects, which would not outlive their owners: publish those under names of their own");
  }
  control::Publish request{options.name_space, name, version, options.keep_last, options.copies, {}};
  if (value.stored) request.value = std::vector<ObjectLocation>{value.stored->location()};
  else request.value = std::string(value.bytes.text());
  return process->ask([&](NodeClient::Done done) { process->node().publish(std::move(request), bounded(deadline), std::move(done)); });
}

void find(const std::shared_ptr<Process>& process, const std::string& name, const PublishedQuery& query, Deadline deadline,
          std::function<void(Result<Found>)> done) {
  auto search = std::make_shared<Search>();
  search->process = process;
  search->request = {query.name_space, name, std::max(query.at_least, query.exactly), query.exactly != 0, query.at_least != 0 || query.exactly != 0};
  search->deadline = deadline;
  search->done = std::move(done);
  search->ask();
}

}  // namespace runtime::published_detail
