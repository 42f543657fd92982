#include "runtime/metrics/metrics_server.h"

#include <sys/socket.h>

#include <vector>

#include "runtime/core/asio.h"
#include "runtime/core/log.h"
#include "runtime/core/timer.h"
#include "runtime/metrics/metrics_http.h"
#include "runtime/metrics/metrics_text.h"

namespace runtime {

namespace {

using Socket = asio::generic::stream_protocol::socket;
using Read = std::function<void(std::function<void(Result<std::string>)>)>;

/// Strangers get so many connections, and so long for each.
constexpr std::size_t kConnectionsMax = 16;
constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kDrainedMax = 4 << 20;

class HttpMetricsServer final : public MetricsServer {
 public:
  HttpMetricsServer(EventLoop& loop, std::string key, Read read)
      : loop_(loop), key_(std::move(key)), read_(std::move(read)) {}
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
    auto connection = std::make_shared<Connection>(*this, std::move(socket), std::move(begun));
    connections_.push_back(connection);
    connection->timer.expires_after(kPatience);
    connection->timer.async_wait([weak = std::weak_ptr(connection)](boost::system::error_code ec) {
      if (auto late = weak.lock(); late && !ec) late->end();
    });
    connection->look();
  }

 private:
  struct Connection : std::enable_shared_from_this<Connection> {
    Connection(HttpMetricsServer& owner, Socket connected, std::string begun)
        : server(&owner),
          socket(std::move(connected)),
          timer(owner.loop_.context()),
          bytes(std::move(begun)) {}

    HttpMetricsServer* server;  // null once closed
    Socket socket;
    Timer timer;
    std::string bytes;  // read so far
    std::string response;
    std::size_t drained = 0;  // after the response

    void close() {
      server = nullptr;
      timer.cancel();
      boost::system::error_code ignored;
      socket.close(ignored);
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
      if (std::string refusal = http_refusal(*request, server->key_); !refusal.empty())
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
      socket.async_read_some(
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
      asio::async_write(socket, asio::buffer(response),
                        [self = shared_from_this()](boost::system::error_code, std::size_t) {
                          if (!self->server) return;
                          boost::system::error_code ignored;
                          self->socket.shutdown(Socket::shutdown_send, ignored);
                          self->drain();
                        });
    }
    /// Bytes that were not read would turn the close into a reset, which may overtake the response.
    void drain() {
      bytes.resize(16 << 10);
      socket.async_read_some(
          asio::buffer(bytes),
          [self = shared_from_this()](boost::system::error_code ec, std::size_t count) {
            if (!self->server) return;
            self->drained += count;
            if (ec || self->drained > kDrainedMax) return self->end();
            self->drain();  // until the timer at the latest
          });
    }
  };

  EventLoop& loop_;
  const std::string key_;
  const Read read_;
  std::vector<std::shared_ptr<Connection>> connections_;  // oldest first
};

}  // namespace

MetricsProvider http_metrics() {
  MetricsProvider provider;
  provider.text = metrics_text;
  provider.server = [](EventLoop& loop, std::string key,
                       Read read) -> std::unique_ptr<MetricsServer> {
    return std::make_unique<HttpMetricsServer>(loop, std::move(key), std::move(read));
  };
  return provider;
}

}  // namespace runtime
