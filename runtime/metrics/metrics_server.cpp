#include "runtime/metrics/metrics_server.h"

#include <sys/socket.h>

#include <vector>

#include "runtime/core/asio.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/metrics/http_stream.h"
#include "runtime/metrics/metrics_http.h"
#include "runtime/metrics/metrics_text.h"
#include "runtime/metrics/tls.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/socket_address.h"

namespace runtime {

namespace {

using Socket = HttpStream::Socket;
using Read = std::function<void(std::function<void(Result<std::string>)>)>;

/// Strangers get so many connections, and so long for each.
constexpr std::size_t kConnectionsMax = 16;
constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kDrainedMax = 4 << 20;

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

  void serve(FileDescriptor fd, std::string begun) override {
    // Who asks in earnest is done within milliseconds: strangers that ask nothing keep nobody out.
    if (connections_.size() >= kConnectionsMax) {
      const std::shared_ptr<Connection> oldest = connections_.front();
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
    auto context = is_tls(begun) ? tls_.current() : nullptr;
    auto stream = context ? tls_http_stream(std::move(socket), context)
                          : plain_http_stream(std::move(socket));
    auto connection = std::make_shared<Connection>(*this, std::move(stream));
    connection->is_private = context != nullptr || is_local;
    connections_.push_back(connection);
    connection->timer.expires_after(kPatience);
    connection->timer.async_wait([weak = std::weak_ptr(connection)](boost::system::error_code ec) {
      if (auto late = weak.lock(); late && !ec) late->end();
    });
    connection->begin(std::move(begun));
  }

 private:
  struct Connection : std::enable_shared_from_this<Connection> {
    Connection(HttpMetricsServer& owner, std::unique_ptr<HttpStream> connected)
        : server(&owner), stream(std::move(connected)), timer(owner.loop_.context()) {}

    HttpMetricsServer* server;  // null once closed
    const std::unique_ptr<HttpStream> stream;
    bool is_private = false;  // nobody between the two can read it
    Timer timer;
    std::string bytes;  // read so far
    std::string response;
    std::size_t drained = 0;  // after the response

    void close() {
      server = nullptr;
      timer.cancel();
      stream->close();
    }
    void begin(std::string begun) {
      stream->open(std::move(begun),
                   [self = shared_from_this()](boost::system::error_code ec, std::string read) {
                     if (!self->server) return;
                     if (ec) return self->end();
                     self->bytes = std::move(read);
                     self->look();
                   });
    }
    void end() {
      if (!server) return;
      auto self = shared_from_this();
      std::erase(server->connections_, self);
      close();
    }
    void look() {
      auto request = parse_http_request(bytes);
      if (!request.ok()) return send(http_refusal(request.status()));
      if (!request->complete) return read_more();
      if (server->is_off_) return send(http_is_off());
      if (!is_private) return send(http_needs_tls());
      const bool is_allowed = !server->keys_ || shows_key(*request, server->keys_());
      if (std::string refusal = http_refusal(*request, is_allowed); !refusal.empty())
        return send(std::move(refusal));
      server->read_(
          [self = shared_from_this(), with_body = request->wants_body](Result<std::string> text) {
            if (!self->server) return;
            self->send(text.ok() ? http_response(200, *text, with_body)
                                 : http_response(503, text.status().message() + "\n", with_body));
          });
    }
    void read_more() {
      const std::size_t before = bytes.size();
      bytes.resize(kHttpRequestBytesMax);
      stream->read_some(
          asio::buffer(bytes.data() + before, bytes.size() - before),
          [self = shared_from_this(), before](boost::system::error_code ec, std::size_t count) {
            if (!self->server) return;
            if (ec == asio::error::eof)
              return self->send(
                  http_refusal(invalid_argument("the request ends in the middle of its head")));
            if (ec) return self->end();
            self->bytes.resize(before + count);
            self->look();
          });
    }
    void send(std::string what) {
      response = std::move(what);
      stream->write(asio::buffer(response),
                    [self = shared_from_this()](boost::system::error_code, std::size_t) {
                      if (!self->server) return;
                      self->stream->end_writing([self] {
                        if (self->server) self->drain();
                      });
                    });
    }
    /// Bytes that were not read would turn the close into a reset, which may overtake the response.
    void drain() {
      bytes.resize(16 << 10);
      stream->read_some(asio::buffer(bytes), [self = shared_from_this()](
                                                 boost::system::error_code ec, std::size_t count) {
        if (!self->server) return;
        self->drained += count;
        if (ec || self->drained > kDrainedMax) return self->end();
        self->drain();  // until the timer at the latest
      });
    }
  };

  EventLoop& loop_;
  const bool is_off_;
  const std::function<std::vector<std::string>()> keys_;
  const Read read_;
  RenewedTls tls_;
  std::vector<std::shared_ptr<Connection>> connections_;  // oldest first
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
