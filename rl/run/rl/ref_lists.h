// Lists by worker of objects that actors are called with: no object in them is missing.
#pragma once

#include <cstddef>
#include <vector>

#include "rl/batch/balance.h"
#include "rl/run/rl/role_calls.h"
#include "runtime/call/object_ref.h"

namespace rl {

/// `refs` for that many workers, with `nothing` in place of those that are not there.
template <class T>
std::vector<runtime::ObjectRef<T>> filled(std::vector<runtime::ObjectRef<T>> refs,
                                          const runtime::ObjectRef<T>& nothing,
                                          std::size_t workers) {
  refs.resize(workers);
  for (runtime::ObjectRef<T>& ref : refs) {
    if (!ref.is_valid()) ref = nothing;
  }
  return refs;
}

/// By worker, the batches of all workers; `nothing` in place of those that have none of its places,
/// so that it need not fetch them.
std::vector<BatchRefs> needed_batches(const BatchRefs& batches, const PromptPlaces& places,
                                      const runtime::ObjectRef<RolloutBatch>& nothing);

}  // namespace rl
