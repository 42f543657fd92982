// The failure of a group of actors or calls whose members failed for several reasons.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/status.h"

namespace runtime {

/// How likely a failure is what made others fail: a member that was ended, or lost its peer, is a
/// consequence. Larger is likelier.
int cause_rank(const Status& failure);

/// Whether two members failed for the same reason: their messages are the same but for numbers and
/// ids.
bool is_same_cause(const Status& a, const Status& b);

struct MemberFailure {
  std::size_t rank = 0;
  Status status;
};

/// The likeliest cause, with its rank. It says how many others failed with the same, and with what
/// else:
///   "rank 7: too many open files; and 19 more with the same; 2 others failed, the first with: ..."
/// `failures` in the order of their ranks, not empty.
Status group_failure(const std::vector<MemberFailure>& failures);

}  // namespace runtime
