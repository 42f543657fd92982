// HttpConnection: a connection that asks for the cluster's numbers once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/core/timer.h"
#include "runtime/metrics/http_stream.h"
#include "runtime/transport/event_loop.h"

namespace runtime {

/// Lives on the event loop. Ends by itself: with its answer, or when its peer is too slow.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  /// What is answered, and to whom.
  struct Service {
    bool is_off = false;                                  // says so to every client
    bool is_private = false;                              // no party between the two can read it
    std::function<std::vector<std::string>()> keys = {};  // the peer has to show one; empty: none
    std::function<void(std::function<void(Result<std::string>)>)> read = {};  // the numbers
  };

  /// `ended` is called once, unless close() came before.
  HttpConnection(EventLoop& loop, std::unique_ptr<HttpStream> stream, Service service,
                 std::function<void(HttpConnection&)> ended);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// `received`: what was read of it already.
  void begin(std::string received);
  void end();
  /// Ends it without an answer and without calling `ended`.
  void close();

 private:
  void look();
  void read_more();
  void send(std::string what);
  void discard_input();

  const std::unique_ptr<HttpStream> stream_;
  const Service service_;
  std::function<void(HttpConnection&)> ended_;  // empty once it is closed
  Timer timer_;
  std::string bytes_;  // read so far
  std::string response_;
  std::size_t discarded_ = 0;  // received after the response
};

}  // namespace runtime
