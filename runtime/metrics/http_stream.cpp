#include "runtime/metrics/http_stream.h"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace runtime {

namespace {

class PlainHttpStream final : public HttpStream {
 public:
  explicit PlainHttpStream(Socket socket) : socket_(std::move(socket)) {}

  void open(std::string received, Opened opened) override { opened({}, std::move(received)); }
  void read_some(asio::mutable_buffer into, Transferred done) override {
    socket_.async_read_some(into, std::move(done));
  }
  void write(asio::const_buffer from, Transferred done) override {
    asio::async_write(socket_, from, std::move(done));
  }
  void end_writing(std::function<void()> done) override {
    boost::system::error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    done();
  }
  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  Socket socket_;
};

class TlsHttpStream final : public HttpStream {
 public:
  TlsHttpStream(Socket socket, std::shared_ptr<asio::ssl::context> context)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {}

  void open(std::string received, Opened opened) override {
    received_ = std::move(received);
    stream_.async_handshake(asio::ssl::stream_base::server, asio::buffer(received_),
                            [opened = std::move(opened)](boost::system::error_code ec,
                                                         std::size_t) { opened(ec, {}); });
  }
  void read_some(asio::mutable_buffer into, Transferred done) override {
    stream_.async_read_some(into, std::move(done));
  }
  void write(asio::const_buffer from, Transferred done) override {
    asio::async_write(stream_, from, std::move(done));
  }
  void end_writing(std::function<void()> done) override {
    stream_.async_shutdown([done = std::move(done)](boost::system::error_code) { done(); });
  }
  void close() override {
    boost::system::error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  const std::shared_ptr<asio::ssl::context> context_;
  std::string received_;
  asio::ssl::stream<Socket> stream_;
};

}  // namespace

std::unique_ptr<HttpStream> plain_http_stream(HttpStream::Socket socket) {
  return std::make_unique<PlainHttpStream>(std::move(socket));
}

std::unique_ptr<HttpStream> tls_http_stream(HttpStream::Socket socket,
                                            std::shared_ptr<asio::ssl::context> context) {
  return std::make_unique<TlsHttpStream>(std::move(socket), std::move(context));
}

}  // namespace runtime
