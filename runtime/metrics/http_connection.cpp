#include "runtime/metrics/http_connection.h"

#include <chrono>
#include <utility>

#include "runtime/core/asio.h"
#include "runtime/metrics/metrics_http.h"

namespace runtime {

namespace {

/// How long a stranger may take.
constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kDiscardedMax = 4 << 20;

}  // namespace

HttpConnection::HttpConnection(EventLoop& loop, std::unique_ptr<HttpStream> stream, Service service,
                               std::function<void(HttpConnection&)> ended)
    : stream_(std::move(stream)),
      service_(std::move(service)),
      ended_(std::move(ended)),
      timer_(loop.context()) {}

void HttpConnection::begin(std::string received) {
  timer_.expires_after(kPatience);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code ec) {
    if (auto late = weak.lock(); late && !ec) late->end();
  });
  stream_->open(std::move(received),
                [self = shared_from_this()](boost::system::error_code ec, std::string read) {
                  if (!self->ended_) return;
                  if (ec) return self->end();
                  self->bytes_ = std::move(read);
                  self->look();
                });
}

void HttpConnection::end() {
  if (!ended_) return;
  const auto self = shared_from_this();
  const auto ended = std::exchange(ended_, {});
  close();
  ended(*this);
}

void HttpConnection::close() {
  ended_ = {};
  timer_.cancel();
  stream_->close();
}

void HttpConnection::look() {
  auto request = parse_http_request(bytes_);
  if (!request.ok()) return send(http_refusal(request.status()));
  if (!request->complete) return read_more();
  if (service_.is_off) return send(http_is_off());
  if (!service_.is_private) return send(http_needs_tls());
  const bool is_allowed = !service_.keys || shows_key(*request, service_.keys());
  if (std::string refusal = http_refusal(*request, is_allowed); !refusal.empty())
    return send(std::move(refusal));
  service_.read(
      [self = shared_from_this(), with_body = request->wants_body](Result<std::string> text) {
        if (!self->ended_) return;
        self->send(text.ok() ? http_response(200, *text, with_body)
                             : http_response(503, text.status().message() + "\n", with_body));
      });
}

void HttpConnection::read_more() {
  const std::size_t before = bytes_.size();
  bytes_.resize(kHttpRequestBytesMax);
  stream_->read_some(
      asio::buffer(bytes_.data() + before, bytes_.size() - before),
      [self = shared_from_this(), before](boost::system::error_code ec, std::size_t count) {
        if (!self->ended_) return;
        if (ec == asio::error::eof)
          return self->send(
              http_refusal(invalid_argument("the request ends in the middle of its head")));
        if (ec) return self->end();
        self->bytes_.resize(before + count);
        self->look();
      });
}

void HttpConnection::send(std::string what) {
  response_ = std::move(what);
  stream_->write(asio::buffer(response_),
                 [self = shared_from_this()](boost::system::error_code, std::size_t) {
                   if (!self->ended_) return;
                   self->stream_->end_writing([self] {
                     if (self->ended_) self->discard_input();
                   });
                 });
}

/// Bytes that were not read would turn the close into a reset, which may overtake the response.
void HttpConnection::discard_input() {
  bytes_.resize(16 << 10);
  stream_->read_some(asio::buffer(bytes_),
                     [self = shared_from_this()](boost::system::error_code ec, std::size_t count) {
                       if (!self->ended_) return;
                       self->discarded_ += count;
                       if (ec || self->discarded_ > kDiscardedMax) return self->end();
                       self->discard_input();  // until the timer at the latest
                     });
}

}  // namespace runtime
