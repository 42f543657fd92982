#include "runtime/node/http_get.h"

#include <algorithm>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <memory>

#include "runtime/core/timer.h"

namespace runtime {

namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr std::uint32_t kHeaderBytesMax = 8192;

/// Keeps itself alive by the operations that are under way, all of which end with finish().
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(EventLoop& loop, HttpRequest request, std::size_t bytes_max,
           UniqueFunction<void(Result<HttpAnswer>)> done)
      : request_(std::move(request)),
        resolver_(loop.context()),
        socket_(loop.context()),
        timer_(loop.context()),
        buffer_(kHeaderBytesMax + bytes_max),
        done_(std::move(done)) {
    parser_.body_limit(bytes_max);
    parser_.header_limit(kHeaderBytesMax);
  }

  void start(Deadline deadline) {
    timer_.expires_at(deadline);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
      if (!ec) self->finish(deadline_exceeded(self->name() + " has not answered in time"));
    });
    boost::system::error_code is_name;
    const auto address = asio::ip::make_address(request_.host, is_name);
    if (!is_name)
      return connect(std::vector<tcp::endpoint>{
          {address, static_cast<std::uint16_t>(std::stoi(request_.port))}});
    resolver_.async_resolve(request_.host, request_.port,
                            [self = shared_from_this()](const boost::system::error_code& ec,
                                                        tcp::resolver::results_type found) {
                              if (ec) return self->fail(ec);
                              std::vector<tcp::endpoint> endpoints;
                              for (const auto& entry : found) endpoints.push_back(entry.endpoint());
                              self->connect(std::move(endpoints));
                            });
  }

 private:
  std::string name() const {
    return "http://" + request_.host + ":" + request_.port + request_.target;
  }

  void connect(std::vector<tcp::endpoint> endpoints) {
    if (!done_) return;
    endpoints_ = std::move(endpoints);
    asio::async_connect(
        socket_, endpoints_,
        [self = shared_from_this()](const boost::system::error_code& ec, const tcp::endpoint&) {
          if (ec) return self->fail(ec);
          self->send();
        });
  }

  void send() {
    message_.method(request_.put ? http::verb::put : http::verb::get);
    message_.target(request_.target);
    message_.version(11);
    message_.set(http::field::host, request_.host);
    message_.set(http::field::user_agent, "starling");
    message_.set(http::field::connection, "close");
    for (const auto& [name, value] : request_.headers) message_.set(name, value);
    message_.prepare_payload();
    http::async_write(
        socket_, message_,
        [self = shared_from_this()](const boost::system::error_code& ec, std::size_t) {
          if (ec) return self->fail(ec);
          self->receive();
        });
  }

  void receive() {
    http::async_read(socket_, buffer_, parser_,
                     [self = shared_from_this()](const boost::system::error_code& ec, std::size_t) {
                       if (ec) return self->fail(ec);
                       HttpAnswer answer;
                       const auto& message = self->parser_.get();
                       answer.status = message.result_int();
                       answer.body = message.body();
                       for (const auto& field : message) {
                         std::string name(field.name_string());
                         std::transform(name.begin(), name.end(), name.begin(),
                                        [](unsigned char c) { return std::tolower(c); });
                         answer.headers.emplace_back(std::move(name), std::string(field.value()));
                       }
                       self->finish(std::move(answer));
                     });
  }

  void fail(const boost::system::error_code& ec) {
    const bool is_parsing =
        ec.category() == http::make_error_code(http::error::bad_version).category() &&
        ec != http::error::end_of_stream && ec != http::error::partial_message;
    if (is_parsing)
      finish(invalid_argument(
          name() + " is not an HTTP server, or its answer is too long: " + ec.message()));
    else
      finish(unavailable(name() + ": " + ec.message()));
  }

  void finish(Result<HttpAnswer> answer) {
    auto done = std::exchange(done_, nullptr);
    if (!done) return;
    timer_.cancel();
    resolver_.cancel();
    boost::system::error_code ignored;
    socket_.close(ignored);
    done(std::move(answer));
  }

  const HttpRequest request_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  Timer timer_;  // of the whole
  std::vector<tcp::endpoint> endpoints_;
  http::request<http::empty_body> message_;
  beast::flat_buffer
      buffer_;  // bounded: what lies between chunks counts for no limit of the parser's
  http::response_parser<http::string_body> parser_;
  UniqueFunction<void(Result<HttpAnswer>)> done_;
};

}  // namespace

std::string HttpAnswer::header(const std::string& name) const {
  auto found = std::find_if(headers.begin(), headers.end(),
                            [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string() : found->second;
}

void http_request(EventLoop& loop, HttpRequest request, std::size_t bytes_max, Deadline deadline,
                  UniqueFunction<void(Result<HttpAnswer>)> done) {
  std::make_shared<Exchange>(loop, std::move(request), bytes_max, std::move(done))->start(deadline);
}

}  // namespace runtime
