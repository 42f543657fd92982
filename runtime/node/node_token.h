// NodeToken: the cluster's token as a node has it, on disk and for its processes.
#pragma once

#include <functional>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/result.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/keyring.h"

namespace runtime {

/// Lives on the event loop.
class NodeToken {
 public:
  /// Another token may be the cluster's next, or (`is_present`) is the cluster's: what lies on disk
  /// is to say so.
  using Keep = std::function<Status(const std::string& token, bool is_present)>;

  /// `next`: a change to it was begun, and may have been recorded; empty: none. `keep` may be
  /// empty.
  NodeToken(std::string token, const std::string& next, Keep keep);

  const Keyring& keyring() const { return keyring_; }
  /// The head is about to change it. Errors: those of keeping it.
  Status expect(const std::string& token);
  void change(const control::TokenChanged& changed);
  /// To a process of this node: what counts, once it was changed.
  void tell(Channel& channel) const;

 private:
  Keyring keyring_;
  const Keep keep_;
};

}  // namespace runtime
