// For commands that ask every node of a cluster itself, rather than the head.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "placement/app/cli_query.h"
#include "runtime/control/cluster_client.h"

namespace runtime {

/// Asks a node, and blocks for the answer. Errors: those of the answer; kDeadlineExceeded when none
/// came in time.
template <class T>
Result<T> observe(EventLoop& loop, NodeClient& node, ObserveControl request,
                  std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const Deadline deadline = deadline_after(patience);
  auto answer = wait_for<ObserveAnswer>(loop, deadline, [&](auto done) {
    ClusterClient(node).observe(std::move(request), deadline, std::move(done));
  });
  if (!answer.ok()) return answer.status();
  if (auto* value = std::get_if<T>(&*answer)) return std::move(*value);
  return internal_error("the node answered something else than was asked");
}

/// A connection with each node of a cluster.
class NodeSet {
 public:
  struct Entry {
    NodeInfo info;
    std::unique_ptr<NodeClient> client;  // null: it cannot be reached
    Status trouble;                      // why the last question had no answer
  };

  /// Errors: as ask_cluster(). Nodes that cannot be reached are in the set without a connection.
  static Result<std::unique_ptr<NodeSet>> connect(const std::string& address);
  NodeSet(const NodeSet&) = delete;
  NodeSet& operator=(const NodeSet&) = delete;
  ~NodeSet();

  EventLoop& loop() { return loop_; }
  const ClusterState& cluster() const { return cluster_; }
  /// Of the node that the state was asked of.
  const ClusterAddress& address() const { return address_; }
  std::vector<Entry>& nodes() { return nodes_; }
  Entry* find(const NodeId& node);

  /// Asks all nodes at the same time; `visit` gets the answers of those that have answered in time,
  /// in the order of the nodes. The others have a trouble.
  template <class T>
  void ask_all(const ObserveControl& request, const std::function<void(const NodeInfo&, T)>& visit,
               std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    auto answers = ask_all(request, patience);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!answers[i].ok()) continue;
      if (auto* value = std::get_if<T>(&*answers[i]))
        visit(nodes_[i].info, std::move(*value));
      else
        nodes_[i].trouble = internal_error("the node answered something else than was asked");
    }
  }
  struct Question {
    std::size_t node = 0;  // which of nodes()
    ObserveControl request;
  };
  /// Asks all of them at the same time; their answers in that order.
  std::vector<Result<ObserveAnswer>> ask_each(std::vector<Question> questions,
                                              std::chrono::milliseconds patience);
  /// Names on stderr the nodes that have not answered. False: there are none.
  bool report_silent() const;

 private:
  NodeSet() = default;
  std::vector<Result<ObserveAnswer>> ask_all(const ObserveControl& request,
                                             std::chrono::milliseconds patience);

  EventLoop loop_;
  ClusterAddress address_;
  ClusterState cluster_;
  std::vector<Entry> nodes_;
};

}  // namespace runtime
