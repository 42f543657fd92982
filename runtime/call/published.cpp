#include "runtime/call/published.h"

#include <algorithm>
#include <utility>

#include "runtime/call/lineage.h"
#include "runtime/call/object_table.h"
#include "runtime/call/query_context.h"
#include "runtime/call/stored_object.h"
#include "runtime/control/published_client.h"
#include "runtime/core/backoff.h"
#include "runtime/core/readable_name.h"
#include "runtime/core/timer.h"
#include "runtime/transport/event_loop.h"

namespace runtime::published_detail {

namespace {

constexpr std::size_t kTypeBytesMax = 4 << 10;  // what is longer is not said
// For finding another copy of what was lost. Readers have their own deadlines.
constexpr std::chrono::seconds kPublishPatience{60};

std::string type_text(std::type_index type) {
  const std::string text = type.name();
  return text.size() <= kTypeBytesMax ? text : "";
}

/// One question, asked again while what was found cannot be had.
struct Search : std::enable_shared_from_this<Search> {
  QueryContextPtr queries;
  control::FindPublished request;
  std::string type;  // of the value; empty: any
  Deadline deadline;
  std::function<void(Result<Found>)> done;
  Backoff backoff;  // what the head names may be gone: dropped meanwhile, or with its node, of
                    // whose end the head is about to hear
  std::vector<ObjectLocation> copies;  // of what was found, to be tried

  void ask() {
    PublishedClient(queries->node)
        .find(request, deadline, [self = shared_from_this()](Result<PublishedObject> found) {
          if (!found.ok()) return self->done(found.status());
          self->on_found(std::move(*found));
        });
  }

  void on_found(PublishedObject found) {
    if (!type.empty() && !found.type.empty() && found.type != type) {
      return done(invalid_argument("version " + std::to_string(found.version) + " of '" +
                                   found.name + "' was published as " + readable_name(found.type) +
                                   ", not as " + readable_name(type)));
    }
    if (auto* bytes = std::get_if<std::string>(&found.value)) {
      ObjectValue value;
      value.bytes = Buffer::copy_of(*bytes);
      return done(
          Found{found.version, ObjectState::ready(object_context(queries), std::move(value))});
    }
    copies = std::move(std::get<std::vector<ObjectLocation>>(found.value));
    if (copies.empty())
      return done(internal_error("the head has named no place of '" + found.name + "'"));
    // Those on this node last, since they are taken from the back.
    std::stable_partition(copies.begin(), copies.end(), [&](const ObjectLocation& copy) {
      return copy.node != queries->node.node_id();
    });
    try_copy(found.version);
  }

  void try_copy(std::uint64_t version) {
    const ObjectLocation location = std::move(copies.back());
    copies.pop_back();
    queries->objects.references.borrow_confirmed(
        location, deadline,
        [self = shared_from_this(), version](Result<std::shared_ptr<StoredObject>> stored) {
          if (!stored.ok()) return self->on_failed(version, stored.status());
          self->have(version, *std::move(stored));
        });
  }

  void have(std::uint64_t version, std::shared_ptr<StoredObject> stored);

  void on_failed(std::uint64_t version, const Status& why) {
    const bool may_be_elsewhere =
        why.code() == ErrorCode::kObjectLost || why.code() == ErrorCode::kUnavailable;
    if (!may_be_elsewhere || queries->objects.shut_down) return done(why);
    if (!copies.empty()) return try_copy(version);
    const auto pause = backoff.next();
    if (steady_now() + pause >= deadline) return done(why);
    auto timer = std::make_shared<Timer>(queries->objects.loop.context(), pause);
    timer->async_wait(
        [self = shared_from_this(), timer](boost::system::error_code) { self->ask(); });
  }
};

/// Of a published object: a copy that is lost is looked for again, on other nodes.
class PublishedLineage final : public Lineage {
 public:
  PublishedLineage(std::weak_ptr<const QueryContext> queries, control::FindPublished request,
                   std::string keeper)
      : queries_(std::move(queries)), request_(std::move(request)), keeper_(std::move(keeper)) {}

  std::string maker() const override {
    return "publish('" + request_.name + "', version " + std::to_string(request_.version) + ")";
  }
  std::string keeper() const override { return keeper_; }
  Result<ObjectStatePtr> make_again(const ObjectLocation&) override {
    auto queries = queries_.lock();
    if (!queries) return cancelled("the runtime was stopped");
    auto again = std::make_shared<ObjectState>(object_context(queries));
    auto search = std::make_shared<Search>();
    search->queries = queries;
    search->request = request_;
    search->deadline = deadline_after(kPublishPatience);
    search->done = [again](Result<Found> found) {
      if (found.ok())
        again->fulfil(found->object->value());
      else
        again->fail(found.status());
    };
    queries->objects.loop.post([search] { search->ask(); });  // callers hold a mutex
    return again;
  }

 private:
  const std::weak_ptr<const QueryContext> queries_;
  const control::FindPublished request_;
  const std::string keeper_;
};

void Search::have(std::uint64_t version, std::shared_ptr<StoredObject> stored) {
  control::FindPublished again = request;
  again.version = version;
  again.exactly = true;
  again.wait = false;
  stored->set_lineage(
      std::make_shared<PublishedLineage>(queries, std::move(again), queries->node.node_address()));
  queries->object_table.add_remakeable(stored);
  ObjectValue value;
  value.stored = std::move(stored);
  done(Found{version, ObjectState::ready(object_context(queries), std::move(value))});
}

}  // namespace

Result<control::Publish> publish_request(const std::string& name, std::uint64_t version,
                                         const ObjectStatePtr& object, std::type_index type,
                                         const PublishOptions& options, Deadline deadline) {
  if (!object) return invalid_argument("publish of an ObjectRef that refers to nothing");
  if (!object->wait(deadline))
    return deadline_exceeded("the object to be published as '" + name + "' was not there in time");
  if (!object->failure().ok())
    return object->failure().with_context("the object to be published as '" + name + "'");
  const ObjectValue& value = object->value();
  if (!value.refs.empty()) {
    return invalid_argument("'" + name +
                            "' has references to other objects, which would not outlive their "
                            "owners: publish those under their own names");
  }
  control::Publish request{options.name_space, name, version,        options.keep_last,
                           options.copies,     {},   type_text(type)};
  if (value.stored)
    request.value = std::vector<ObjectLocation>{value.stored->location()};
  else
    request.value = std::string(value.bytes.text());
  return request;
}

void find(const QueryContextPtr& queries, const std::string& name, std::type_index type,
          const PublishedQuery& query, Deadline deadline, std::function<void(Result<Found>)> done) {
  auto search = std::make_shared<Search>();
  search->queries = queries;
  search->request = {query.name_space, name, std::max(query.at_least, query.exactly),
                     query.exactly != 0, query.at_least != 0 || query.exactly != 0};
  search->type = type_text(type);
  search->deadline = deadline;
  search->done = std::move(done);
  search->ask();
}

}  // namespace runtime::published_detail
