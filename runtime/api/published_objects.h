// PublishedApi: values with a name and a version, which belong to the cluster.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "runtime/api/connection.h"
#include "runtime/api/until.h"
#include "runtime/call/published.h"
#include "runtime/call/watch.h"

namespace runtime {

/// Runtime::published(). A value that borrows the Runtime. Errors: also those of a runtime that is
/// not started.
class PublishedApi {
 public:
  explicit PublishedApi(const Connection& connection) : connection_(connection) {}

  /// Gives the cluster an object under a name and a version. It outlives this process, the job (in
  /// a namespace that the job does not have to itself) and the process that made it. What lies in a
  /// node's store stays there, uncopied if it is of a MiB or more; small values go to the head.
  /// Returns once the cluster keeps it. Errors: kInvalidArgument (the version is not larger than
  /// the latest: the message names both; or the value has references to other objects). Also
  /// kResourceExhausted (no room; more copies than nodes), kObjectLost, the object's own failure.
  template <class T>
  Status publish(const std::string& name, std::uint64_t version, const ObjectRef<T>& ref,
                 const PublishOptions& options = {}, Until until = std::chrono::seconds(30)) {
    return publish_object(name, version, ref.state(), published_detail::type_of<T>(), options,
                          until.at());
  }
  /// The latest version, or the one that the query names, which is waited for. The reference keeps
  /// it. Does not fetch the bytes. Errors: kInvalidArgument (it was published as another type),
  /// kObjectLost (its nodes have left). kNotFound: it is not there now, or older than those that
  /// are kept. kDeadlineExceeded: it is not there, and was not published in time.
  template <class T>
  Result<Published<T>> latest(const std::string& name, const PublishedQuery& query = {},
                              Until until = std::chrono::seconds(30)) {
    Result<published_detail::Found> found =
        find(name, published_detail::type_of<T>(), query, until.at());
    if (!found.ok()) return found.status();
    return Published<T>{found->version, ObjectRef<T>(std::move(found->object))};
  }
  /// A future of it, for get(), wait(), async_get() or a call's argument: settles with the first
  /// version that the query allows. Does not block.
  template <class T>
  ObjectRef<T> when(const std::string& name, const PublishedQuery& query,
                    Until until = std::chrono::minutes(10)) {
    return ObjectRef<T>(when_found(name, published_detail::type_of<T>(), query, until.at()));
  }
  /// Calls back for the version that is there now, if there is one, and for later ones. When
  /// several come at once, it calls back for the latest alone. Versions up to one that it has
  /// received are no news, also when the name was unpublished in between.
  Watch watch(const std::string& name, std::function<void(const PublishedEvent&)> callback,
              const std::string& name_space = {});
  /// Drops one version, or (0) all and the name. References and views keep what they refer to.
  /// Errors: kNotFound.
  Status unpublish(const std::string& name, std::uint64_t version = 0,
                   const std::string& name_space = {}, Until until = std::chrono::seconds(30));

 private:
  Status publish_object(const std::string& name, std::uint64_t version,
                        const ObjectStatePtr& object, std::type_index type,
                        const PublishOptions& options, Deadline deadline);
  Result<published_detail::Found> find(const std::string& name, std::type_index type,
                                       const PublishedQuery& query, Deadline deadline);
  ObjectStatePtr when_found(const std::string& name, std::type_index type,
                            const PublishedQuery& query, Deadline deadline);

  const Connection& connection_;
};

}  // namespace runtime
