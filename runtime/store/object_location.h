// ObjectLocation: the place of a sealed object's bytes. It travels inside of references.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/schema/object.capnp.h"

namespace runtime {

/// Names a place and keeps nothing alive: the owner frees the object when its count reaches zero,
/// after which reading the location gives kObjectLost.
struct ObjectLocation {
  ObjectId id;
  NodeId node;
  std::string endpoint;  // the node's, "HOST:PORT"
  std::uint32_t segment = 0;
  std::uint64_t extent = 0;  // names the leased range for all time
  std::uint64_t offset = 0;  // of the data in the segment; a multiple of 64
  std::uint64_t size = 0;    // data bytes

  bool operator==(const ObjectLocation&) const = default;

  void write(schema::ObjectLocation::Builder out) const;
  /// Errors: kInvalidArgument on ids of the wrong size or an offset that is not aligned. May throw
  /// kj::Exception: call it inside decode().
  static Result<ObjectLocation> read(schema::ObjectLocation::Reader in);
};

}  // namespace runtime
