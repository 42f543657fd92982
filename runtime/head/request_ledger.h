// RequestLedger: requests that must not run twice. A node may repeat what it has no answer to, to
// the next head or over another connection
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/head/head_context.h"

namespace runtime {

class RequestLedger {
 public:
  explicit RequestLedger(const HeadContext& context) : context_(context) {}

  /// The answerer that remembers the answer; null: it has been answered, or will be when the first
  /// is. Fills in what is known of the request.
  ControlAnswerer once(HeadCall& call, const ControlRequest& request, ControlAnswerer answer);
  /// For one that is answered in a later turn than it changes something: recorded with that change.
  void note_begun(const HeadCall& call, std::uint64_t about);
  /// Whether it comes again: it is answered as it was, or will be.
  bool knows(RequestId id) const {
    return under_way_.contains(id) || context_.tables.requests().find(id) != nullptr;
  }

 private:
  /// Call it in the turn of the change that the answer tells of.
  void answer(RequestId id, Result<ControlAnswer> result);

  const HeadContext& context_;
  std::map<RequestId, std::vector<ControlAnswerer>> under_way_;  // of those that have an id
};

}  // namespace runtime
