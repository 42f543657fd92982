// Published objects: values with a name and a version, which belong to the cluster rather than to
// the process that made them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <typeindex>

#include "runtime/call/object_ref.h"
#include "runtime/core/result.h"

namespace runtime {

namespace control {
struct Publish;
}  // namespace control

struct PublishOptions {
  /// Where the name lies. Empty: the job's namespace.
  std::string name_space{};
  /// Versions of the name that stay, this one included; older ones are dropped, and their memory
  /// goes when no process holds them any more.
  std::uint32_t keep_last = 2;
  /// Nodes that keep the bytes, so that the loss of all but one of them loses nothing. Small values
  /// are kept by the head and by no node.
  std::uint32_t copies = 1;
};

/// Which version of a published object.
struct PublishedQuery {
  /// Not an older one than this; it is waited for. 0: whichever is the latest now.
  std::uint64_t at_least = 0;
  /// This one alone; it is waited for. 0: any.
  std::uint64_t exactly = 0;
  /// Empty: the job's namespace.
  std::string name_space{};
};

/// A version of a published object. The reference keeps it, also when the name has gone on or is
/// dropped.
template <class T>
struct Published {
  std::uint64_t version = 0;
  ObjectRef<T> ref;
};

/// A version that has been published.
struct PublishedEvent {
  std::string name;
  std::uint64_t version = 0;
};

namespace published_detail {

/// What a value travels as: two types of which one can be read as the other are one.
template <class T>
struct Travels {
  using type = T;
};
template <class E>
struct Travels<ArrayView<E>> {
  using type = std::vector<E>;
};
template <class T>
std::type_index type_of() {
  return typeid(typename Travels<T>::type);
}

struct Found {
  std::uint64_t version = 0;
  ObjectStatePtr object;
};

/// The request with which rt.published().publish asks the head. Blocks until the object is there.
/// `type`: of the value. Errors: as publish(), so far as they come from the object.
Result<control::Publish> publish_request(const std::string& name, std::uint64_t version,
                                         const ObjectStatePtr& object, std::type_index type,
                                         const PublishOptions& options, Deadline deadline);
/// `done` once, on the event loop: with a reference that keeps the version. Refused with
/// kInvalidArgument when it was published as another type.
void find(const QueryContextPtr& queries, const std::string& name, std::type_index type,
          const PublishedQuery& query, Deadline deadline, std::function<void(Result<Found>)> done);

}  // namespace published_detail

}  // namespace runtime
