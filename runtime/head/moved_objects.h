// MovedObjects: finds objects that other nodes have taken over of one that was drained.
#pragma once

#include "runtime/control/control.h"
#include "runtime/head/drained_nodes.h"
#include "runtime/head/head_context.h"

namespace runtime {

class MovedObjects {
 public:
  MovedObjects(const HeadContext& context, const DrainedNodes& drained)
      : context_(context), drained_(drained) {}

  void serve(const HeadCall& call, control::FindObject& body, ControlAnswerer answer);

 private:
  const HeadContext& context_;
  const DrainedNodes& drained_;
};

}  // namespace runtime
