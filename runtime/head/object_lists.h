// ObjectLists: the list of all objects that there are, as the nodes and the head know them.
#pragma once

#include <memory>

#include "runtime/control/control.h"
#include "runtime/head/head_context.h"

namespace runtime {

class ObjectLists {
 public:
  explicit ObjectLists(const HeadContext& context) : context_(context) {}

  void serve(const HeadCall& call, ControlAnswerer answer) {
    list(call.deadline, nullptr, std::move(answer));
  }

 private:
  /// `before`: a list that was taken before, of which not all objects had an owner.
  void list(Deadline deadline, std::shared_ptr<const ObjectList> before, ControlAnswerer answer);
  /// Adds what only the head knows: the names that things are published under, and which actors the
  /// processes are.
  void finish(ObjectList& list) const;

  const HeadContext& context_;
};

}  // namespace runtime
