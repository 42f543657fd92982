// GroupControl: the operations on placement groups for other managers.
#pragma once

#include <chrono>
#include <string>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace runtime {

class GroupControl {
 public:
  virtual ~GroupControl() = default;

  /// It is gone: what it holds is given back, and its actors end.
  virtual void drop(GroupId group, const Status& why) = 0;
  /// It gives its place back, and waits for another once its actors have ended. `grace`: for those
  /// of them that are started again.
  virtual void tear(GroupId group, const std::string& text, std::chrono::milliseconds grace) = 0;
  /// Looks for a place now. False: there is no room.
  virtual bool place(GroupId group) = 0;
  /// Those whose nodes are being asked, that node among them, look for another place.
  virtual void place_elsewhere(NodeId node) = 0;
};

}  // namespace runtime
