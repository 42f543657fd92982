// Control-plane requests and replies about objects: published ones, and lists of all.
// runtime/schema/published.capnp is the format.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/control/object_info.h"
#include "runtime/store/object_location.h"

namespace runtime {

/// The bytes of a published version: small ones at the head, others in the stores of these nodes.
using PublishedValue = std::variant<std::string, std::vector<ObjectLocation>>;

struct PublishedObject {
  std::string name;
  std::uint64_t version = 0;
  PublishedValue value;
  std::string type = {};  // as Publish gave it
  bool operator==(const PublishedObject&) const = default;
};

namespace control {

/// Answered once the cluster keeps it. Refused with kInvalidArgument unless the version is larger
/// than the latest.
struct Publish {
  std::string name_space;  // empty: the job's
  std::string name;
  std::uint64_t version = 0;
  std::uint32_t keep_last = 1;
  std::uint32_t copies = 1;
  PublishedValue value;   // of stored ones exactly one location, on any node
  std::string type = {};  // of the value, as its program's compiler names it; empty: not said
  bool operator==(const Publish&) const = default;
};
struct FindPublished {
  std::string name_space;
  std::string name;
  std::uint64_t version = 0;  // at least
  bool exactly = false;       // this one
  bool wait = false;          // until the deadline
  bool operator==(const FindPublished&) const = default;
};
struct Unpublish {
  std::string name_space;
  std::string name;
  std::uint64_t version = 0;  // 0: all
  bool operator==(const Unpublish&) const = default;
};
/// From clients to the head, and from the head to the nodes.
struct ListObjects {
  bool operator==(const ListObjects&) const = default;
};

// From the head to a node.

/// Keep the object in the store's own name: the very bytes if they are here, else a copy. Answered
/// with where they are then.
struct AdoptObject {
  ObjectLocation location;
  bool operator==(const AdoptObject&) const = default;
};
struct DropObject {
  ObjectLocation location;
  bool operator==(const DropObject&) const = default;
};

/// Of an object whose node was drained and has left: from a node to the head, and from the head to
/// the nodes. Answered with where it is now; kNotFound.
struct FindObject {
  ObjectId object;
  NodeId node;  // where it was
  bool operator==(const FindObject&) const = default;
};

}  // namespace control

using ObjectControl =
    std::variant<control::Publish, control::FindPublished, control::Unpublish, control::ListObjects,
                 control::AdoptObject, control::DropObject, control::FindObject>;
using ObjectControlAnswer = std::variant<PublishedObject, ObjectLocation, ObjectList>;

}  // namespace runtime
