#include "runtime/metrics/metrics_server.h"

#include <sys/socket.h>

#include <vector>

#include "runtime/core/asio.h"
#include "runtime/core/log.h"
#include "runtime/metrics/http_connection.h"
#include "runtime/metrics/http_stream.h"
#include "runtime/metrics/metrics_text.h"
#include "runtime/metrics/tls.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/socket_address.h"

namespace runtime {

namespace {

using Socket = HttpStream::Socket;
using Read = std::function<void(std::function<void(Result<std::string>)>)>;

/// The most connections of strangers.
constexpr std::size_t kConnectionsMax = 16;

/// Whether the other end of a connection is on this machine: it has the address of this end, or a
/// loopback one.
bool is_of_this_machine(int socket) {
  const auto here = local_tcp_address(socket), there = peer_tcp_address(socket);
  if (!here || !there) return !here && !there;  // a Unix socket has none
  return there->address().is_loopback() || here->address() == there->address();
}

class HttpMetricsServer final : public MetricsServer {
 public:
  HttpMetricsServer(EventLoop& loop, MetricsServerOptions options, Read read)
      : loop_(loop),
        is_off_(options.is_off),
        keys_(std::move(options.keys)),
        read_(std::move(read)),
        tls_(std::move(options.tls)) {}
  ~HttpMetricsServer() override {
    for (const auto& connection : std::exchange(connections_, {})) connection->close();
  }

  void serve(FileDescriptor fd, std::string received) override {
    // Who asks in earnest is done within milliseconds: strangers that ask nothing keep no client
    // out.
    if (connections_.size() >= kConnectionsMax) {
      const std::shared_ptr<HttpConnection> oldest = connections_.front();
      oldest->end();
    }
    sockaddr_storage address{};
    socklen_t bytes = sizeof address;
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return;
    boost::system::error_code error;
    Socket socket(loop_.context());
    socket.assign(asio::generic::stream_protocol(address.ss_family, 0), fd.get(), error);
    if (error) return;
    fd.release();
    const bool is_local = is_of_this_machine(socket.native_handle());
    auto context = is_tls(received) ? tls_.current() : nullptr;
    auto stream = context ? tls_http_stream(std::move(socket), context)
                          : plain_http_stream(std::move(socket));
    auto connection = std::make_shared<HttpConnection>(
        loop_, std::move(stream),
        HttpConnection::Service{is_off_, context != nullptr || is_local, keys_, read_},
        [this](HttpConnection& ended) {
          std::erase_if(connections_, [&](const auto& one) { return one.get() == &ended; });
        });
    connections_.push_back(connection);
    connection->begin(std::move(received));
  }

 private:
  EventLoop& loop_;
  const bool is_off_;
  const std::function<std::vector<std::string>()> keys_;
  const Read read_;
  RenewedTls tls_;
  std::vector<std::shared_ptr<HttpConnection>> connections_;  // oldest first
};

}  // namespace

MetricsProvider http_metrics() {
  MetricsProvider provider;
  provider.text = metrics_text;
  provider.check_tls = [](const TlsFiles& files) { return load_tls(files).status(); };
  provider.server = [](EventLoop& loop, MetricsServerOptions options,
                       Read read) -> std::unique_ptr<MetricsServer> {
    return std::make_unique<HttpMetricsServer>(loop, std::move(options), std::move(read));
  };
  return provider;
}

}  // namespace runtime
