// The metrics of a node, before they have a format.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "runtime/control/observe.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/file_descriptor.h"

namespace runtime {

struct MetricsReport {
  NodeLoad load;
  ClassLoad worker_starts;  // how long they took, as calls of a class
  ClassLoad fetches;        // of objects from other nodes
  Numbers head;             // of the head next to this node; empty: it is elsewhere, or away
  bool is_head = false;
};

/// Who may read the metrics at the node's port.
enum class MetricsAccess { kKey, kOpen, kOff };

/// Answers HTTP requests that came in at the node's port.
class MetricsServer {
 public:
  virtual ~MetricsServer() = default;
  /// Takes over a connection that began with these bytes. On the loop.
  virtual void serve(FileDescriptor socket, std::string received) = 0;
};

/// What a node shows to HTTPS clients; empty: it speaks HTTP, within the machine alone.
struct TlsFiles {
  std::filesystem::path certificate;  // PEM, with the chain
  std::filesystem::path key;          // PEM
  bool any() const { return !certificate.empty(); }
};

struct MetricsServerOptions {
  /// What a caller has to show, one of these. Null: any client may read.
  std::function<std::vector<std::string>()> keys;
  TlsFiles tls;
  bool is_off = false;  // no one may read, and callers are told so
};

/// What the program brings along, so that the library needs neither HTTP nor a metrics format.
struct MetricsProvider {
  /// As Prometheus reads it. Null: there are no metrics.
  std::function<std::string(const MetricsReport& report)> text;
  /// Whether the files are what an HTTPS server needs. Errors name the file.
  std::function<Status(const TlsFiles& files)> check_tls;
  /// `read(done)` gets the text.
  std::function<std::unique_ptr<MetricsServer>(
      EventLoop& loop, MetricsServerOptions options,
      std::function<void(std::function<void(Result<std::string>)>)> read)>
      server;
};

}  // namespace runtime
