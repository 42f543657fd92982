// NodeSet: connections with every node of a cluster, for commands that ask the nodes rather than
// the head.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "placement/app/cli_query.h"
#include "runtime/control/cluster_client.h"

namespace placement {

/// Asks a node, and blocks for the answer. Errors: those of the answer; kDeadlineExceeded when none
/// came in time.
template <class T>
runtime::Result<T> observe(runtime::EventLoop& loop, runtime::NodeClient& node,
                           runtime::ObserveControl request,
                           std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const runtime::Deadline deadline = runtime::deadline_after(patience);
  auto answer = wait_for<runtime::ObserveAnswer>(loop, deadline, [&](auto done) {
    runtime::ClusterClient(node).observe(std::move(request), deadline, std::move(done));
  });
  if (!answer.ok()) return answer.status();
  if (auto* value = std::get_if<T>(&*answer)) return std::move(*value);
  return runtime::internal_error("the node answered something else than was asked");
}

/// A connection with each node of a cluster.
class NodeSet {
 public:
  struct Entry {
    runtime::NodeInfo info;
    std::unique_ptr<runtime::NodeClient> client;  // null: it cannot be reached
    runtime::Status trouble;                      // why the last question had no answer
  };

  /// Errors: as ask_cluster(). Nodes that cannot be reached are in the set without a connection.
  static runtime::Result<std::unique_ptr<NodeSet>> connect(const std::string& address);
  NodeSet(const NodeSet&) = delete;
  NodeSet& operator=(const NodeSet&) = delete;
  ~NodeSet();

  runtime::EventLoop& loop() { return loop_; }
  const runtime::ClusterState& cluster() const { return cluster_; }
  /// Of the node that the state was asked of.
  const runtime::ClusterAddress& address() const { return address_; }
  std::vector<Entry>& nodes() { return nodes_; }
  Entry* find(const runtime::NodeId& node);

  /// Asks all nodes at the same time; `visit` gets the answers of those that have answered in time,
  /// in the order of the nodes. The others have a trouble.
  template <class T>
  void ask_all(const runtime::ObserveControl& request,
               const std::function<void(const runtime::NodeInfo&, T)>& visit,
               std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    auto answers = ask_all(request, patience);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!answers[i].ok()) continue;
      if (auto* value = std::get_if<T>(&*answers[i]))
        visit(nodes_[i].info, std::move(*value));
      else
        nodes_[i].trouble =
            runtime::internal_error("the node answered something else than was asked");
    }
  }
  struct Question {
    std::size_t node = 0;  // which of nodes()
    runtime::ObserveControl request;
  };
  /// Asks all of them at the same time; their answers in that order.
  std::vector<runtime::Result<runtime::ObserveAnswer>> ask_each(std::vector<Question> questions,
                                                                std::chrono::milliseconds patience);
  /// Names on stderr the nodes that have not answered. False: there are none.
  bool report_silent() const;

 private:
  NodeSet() = default;
  std::vector<runtime::Result<runtime::ObserveAnswer>> ask_all(
      const runtime::ObserveControl& request, std::chrono::milliseconds patience);

  runtime::EventLoop loop_;
  runtime::ClusterAddress address_;
  runtime::ClusterState cluster_;
  std::vector<Entry> nodes_;
};

}  // namespace placement
