// The wording of a store's and a node's notice that an object is lost. Such errors arrive at
// StoredObject, which makes the object again or adds what made it.
#pragma once

#include <string>
#include <string_view>

#include "runtime/store/object_location.h"

namespace runtime {

/// Between what is lost and why.
inline constexpr std::string_view kLossInfix = " is lost: ";

/// kObjectLost, with the object's id and size, the node that held it, and why. For instance:
///    "object 7f3a0011 (4194304 bytes on node 33aa0011) is lost: its owner, worker 5c5c0011 (pid 12
///    on node 33aa0011), ended: killed by SIGKILL"
inline Status object_loss(const ObjectLocation& location, const std::string& why) {
  return object_lost("object " + location.id.hex() + " (" + std::to_string(location.size) +
                     " bytes on node " + location.node.short_hex() + ")" + std::string(kLossInfix) +
                     why);
}

/// What a store answered about an object, with the object's name.
inline Status about_object(const ObjectLocation& location, const Status& status) {
  if (status.code() == ErrorCode::kObjectLost) return object_loss(location, status.message());
  return status.with_context("object " + location.id.hex());
}

}  // namespace runtime
