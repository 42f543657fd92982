// A node's report of the objects in its store.
#pragma once

#include "runtime/control/object_control.h"
#include "runtime/store/object_store.h"

namespace runtime {

/// Lists the objects that the store of `node` reports.
ObjectList object_list(NodeId node, const StoreList& store);

}  // namespace runtime
