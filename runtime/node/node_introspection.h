// NodeIntrospection: answers about what a node does: load, workers, stacks, traces, metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/control/control.h"
#include "runtime/core/lifetime.h"
#include "runtime/node/worker_view.h"
#include "runtime/observe/activity_page.h"
#include "runtime/observe/activity_table.h"
#include "runtime/observe/metrics_source.h"
#include "runtime/observe/stack_probe.h"
#include "runtime/store/object_store.h"
#include "runtime/transport/handshake.h"

namespace runtime {

struct NodeIntrospectionOptions {
  NodeId node;
  Credentials credentials;  // for measuring other nodes
  bool is_head = false;
  MetricsAccess access = MetricsAccess::kKey;
  MetricsProvider metrics;
  TlsFiles tls;
};

/// What of the node is looked at besides its workers.
struct NodeIntrospectionSources {
  std::function<ObjectStoreStats()> objects;
  std::function<void(ControlRequest, ControlAnswerer)> head;
  std::function<void(Numbers&)> numbers;  // what else the node knows
};

/// Lives on the event loop.
class NodeIntrospection {
 public:
  /// `workers` stays there as long as this.
  NodeIntrospection(EventLoop& loop, NodeIntrospectionOptions options, const WorkerView& workers,
                    NodeIntrospectionSources sources);
  NodeIntrospection(const NodeIntrospection&) = delete;
  NodeIntrospection& operator=(const NodeIntrospection&) = delete;
  ~NodeIntrospection();

  /// Answers a client of the node, but for what the head answers.
  void serve(ObserveControl& request, std::chrono::milliseconds timeout, ControlAnswerer answer);
  /// A process's page came over its connection.
  void on_activity(const Channel& channel, Message& message);
  void on_closed(const Channel& channel) { activity_.retire(channel.serial()); }
  /// An HTTP client connected to the node's port.
  void on_http(FileDescriptor socket, std::string received);
  void on_refused() { ++refused_; }
  void on_fetched(const FetchedObject& fetched);

 private:
  struct Measuring;

  NodeLoad load(std::size_t actors_max);
  WorkerList list_workers() const;
  void read_metrics(std::function<void(Result<std::string>)> done);
  void take_stack(const ActorId& actor, ControlAnswerer answer);
  TraceChunk take_trace();
  void record_until(std::uint64_t ns);
  void measure(const control::MeasurePeer& request, std::chrono::milliseconds timeout,
               ControlAnswerer answer);

  EventLoop& loop_;
  const NodeIntrospectionOptions options_;
  const WorkerView& workers_;
  const NodeIntrospectionSources sources_;
  ActivityTable activity_;
  StackProbes stacks_;
  std::unique_ptr<MetricsServer> http_;
  std::shared_ptr<ActivityPage>
      own_page_;  // of what the node itself fetches, once a client wants it recorded
  std::uint64_t own_after_ = 0;
  ClassLoad fetches_;
  std::uint64_t refused_ = 0;
  Lifetime lifetime_;
};

}  // namespace runtime
