// A connection of an HTTP client, plain or in TLS.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/core/asio.h"

namespace boost::asio::ssl {
class context;
}

namespace runtime {

/// Everything happens on the loop of the socket; each handler is called once, before or after
/// close().
class HttpStream {
 public:
  using Socket = asio::generic::stream_protocol::socket;
  using Transferred = std::function<void(boost::system::error_code, std::size_t)>;
  using Opened = std::function<void(boost::system::error_code, std::string received)>;

  virtual ~HttpStream() = default;
  /// `received`: what was read of the connection already. Calls back with what that is of the
  /// request.
  virtual void open(std::string received, Opened opened) = 0;
  virtual void read_some(asio::mutable_buffer into, Transferred done) = 0;
  virtual void write(asio::const_buffer from, Transferred done) = 0;
  /// Says that nothing more is written.
  virtual void end_writing(std::function<void()> done) = 0;
  virtual void close() = 0;
};

std::unique_ptr<HttpStream> plain_http_stream(HttpStream::Socket socket);
std::unique_ptr<HttpStream> tls_http_stream(HttpStream::Socket socket,
                                            std::shared_ptr<boost::asio::ssl::context> context);

}  // namespace runtime
