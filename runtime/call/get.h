// Values of objects: what Runtime::get and the calls for several objects do with each.
#pragma once

#include "runtime/call/object_ref.h"
#include "runtime/call/object_view.h"
#include "runtime/core/result.h"

namespace runtime {

/// Why a reference to nothing has no value.
inline Status nothing_to_get() {
  return invalid_argument("get of an ObjectRef that refers to nothing");
}

/// Waits for the object and decodes it. kInvalidArgument: the reference refers to nothing.
template <class T>
Result<T> get_value(const ObjectRef<T>& ref, Deadline deadline) {
  static_assert(!view_detail::kBorrows<T>,
                "spans and string views point into the object: read it with ObjectApi::view, which "
                "keeps it");
  if (!ref.is_valid()) return nothing_to_get();
  return fetch<T>(*ref.state(), deadline);
}

inline Status get_value(const ObjectRef<void>& ref, Deadline deadline) {
  if (!ref.is_valid()) return nothing_to_get();
  return ref.state()->open(deadline).status();
}

}  // namespace runtime
