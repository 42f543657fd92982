// NodeRegistry: the members of the cluster. They join, come back over a new connection, and go.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "runtime/control/control.h"
#include "runtime/head/head_context.h"
#include "runtime/head/waiters.h"

namespace runtime {

class NodeRegistry {
 public:
  struct Hooks {
    std::function<NodeInfo(const NodeInfo&)> shown;  // with what changes by itself
    /// What runs there and what the head knows are to be brought together.
    std::function<void(const control::RegisterNode&)> returned;
    /// It has joined, or come back.
    std::function<void(NodeId)> connected;
    /// Before it is forgotten. Returns what there is to say of its end.
    std::function<std::string(NodeId, const std::string& why)> ends;
    std::function<void(NodeId, const std::string& text)> lost;
    std::function<void()> place_pending;
  };

  NodeRegistry(const HeadContext& context, Hooks hooks)
      : context_(context), hooks_(std::move(hooks)) {}

  void serve(const HeadCall& call, control::RegisterNode& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::Heartbeat& body, ControlAnswerer answer);
  void serve(const HeadCall& call, control::WatchNodes& body, ControlAnswerer answer);

  /// Its connection broke or its lease ended. Ignores one that is no member.
  void lose(NodeId node, const std::string& why);
  /// The list has changed: those that watch it get it.
  void changed();
  /// Takes over the restored nodes, after ClusterTables::restore.
  Status restored();

  void tick(Deadline now);
  Deadline next_tick() const { return watchers_.earliest(); }

 private:
  struct Watcher {
    std::uint64_t version;  // that it knows
    ControlAnswerer answer;
  };
  /// The list for a watcher that knows that version (0: nothing).
  control::NodeList list(std::uint64_t known) const;

  const HeadContext& context_;
  const Hooks hooks_;
  Waiters<std::monostate, Watcher> watchers_;
};

}  // namespace runtime
