// QueryContext: the parts of a process that its questions to the head share. Watches, the ends of
// actors and published objects need them.
#pragma once

#include "runtime/call/fwd.h"
#include "runtime/call/object_context.h"

namespace runtime {

class CallbackThread;
class NodeClient;

/// Each holder has a share of what keeps all of it alive.
struct QueryContext {
  NodeClient& node;
  const ObjectContext& objects;
  ObjectTable& object_table;
  CallbackThread& callbacks;
};

/// Of an object that such a question makes.
inline ObjectContextPtr object_context(const QueryContextPtr& queries) {
  return {queries, &queries->objects};
}

}  // namespace runtime
