#include "runtime/api/published_objects.h"

#include <memory>
#include <utility>

#include "runtime/call/process.h"
#include "runtime/control/published_client.h"

namespace runtime {

Status PublishedApi::publish_object(const std::string& name, std::uint64_t version,
                                    const ObjectStatePtr& object, std::type_index type,
                                    const PublishOptions& options, Deadline deadline) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  auto request = published_detail::publish_request(name, version, object, type, options, deadline);
  if (!request.ok()) return request.status();
  return connection_.process->ask([&](NodeClient::Done done) {
    PublishedClient(connection_.process->node())
        .publish(*std::move(request), bounded(deadline), std::move(done));
  });
}

Result<published_detail::Found> PublishedApi::find(const std::string& name, std::type_index type,
                                                   const PublishedQuery& query, Deadline deadline) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask<published_detail::Found>(
      [&](NodeClient::Callback<published_detail::Found> done) {
        published_detail::find(connection_.process->queries(), name, type, query, bounded(deadline),
                               std::move(done));
      });
}

ObjectStatePtr PublishedApi::when_found(const std::string& name, std::type_index type,
                                        const PublishedQuery& query, Deadline deadline) {
  if (Status status = connection_.require_started(); !status.ok())
    return ObjectState::failed(object_context(connection_.process), status);
  auto awaited = std::make_shared<ObjectState>(object_context(connection_.process));
  PublishedQuery first = query;
  if (first.at_least == 0 && first.exactly == 0) first.at_least = 1;  // whichever comes
  published_detail::find(connection_.process->queries(), name, type, first, bounded(deadline),
                         [awaited](Result<published_detail::Found> found) {
                           if (found.ok())
                             awaited->fulfil(found->object->value());
                           else
                             awaited->fail(found.status());
                         });
  return awaited;
}

Watch PublishedApi::watch(const std::string& name,
                          std::function<void(const PublishedEvent&)> callback,
                          const std::string& name_space) {
  if (!connection_.require_started().ok()) return {};
  return Watch::on_published(connection_.process->queries(), name, name_space, std::move(callback));
}

Status PublishedApi::unpublish(const std::string& name, std::uint64_t version,
                               const std::string& name_space, Until until) {
  if (Status status = connection_.require_started(); !status.ok()) return status;
  return connection_.process->ask([&](NodeClient::Done done) {
    PublishedClient(connection_.process->node())
        .unpublish({name_space, name, version}, bounded(until.at()), std::move(done));
  });
}

}  // namespace runtime
