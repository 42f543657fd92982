#include "runtime/metrics/metrics_http.h"

#include <sodium.h>
#include <algorithm>

#include <boost/beast/http.hpp>
#include <sstream>

#include "runtime/core/asio.h"

namespace runtime {

namespace http = boost::beast::http;

namespace {

Status too_long() {
  return resource_exhausted("a request's head has at most " + std::to_string(kHttpRequestBytesMax) +
                            " bytes here");
}

}  // namespace

Result<ScrapeRequest> parse_http_request(std::string_view bytes) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kHttpRequestBytesMax);
  parser.body_limit(boost::none);  // none is read
  parser.eager(false);
  boost::system::error_code error;
  parser.put(asio::buffer(bytes.data(), bytes.size()), error);
  if (error == http::error::need_more) {
    if (bytes.size() >= kHttpRequestBytesMax) return too_long();
    return ScrapeRequest();
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return too_long();
  // Of a body, too: then the head has been read.
  if (const http::verb method = parser.get().method();
      parser.is_header_done() && method != http::verb::get && method != http::verb::head) {
    return unimplemented("only GET and HEAD are served, not " +
                         std::string(parser.get().method_string()));
  }
  if (error) return invalid_argument("not an HTTP request: " + error.message());
  if (!parser.is_header_done()) return ScrapeRequest();
  const auto& head = parser.get();
  ScrapeRequest request;
  request.complete = true;
  request.wants_body = head.method() == http::verb::get;
  request.path = std::string(head.target().substr(0, head.target().find('?')));
  request.authorization = std::string(head[http::field::authorization]);
  return request;
}

std::string http_refusal(const Status& why) {
  const int status = why.code() == ErrorCode::kUnimplemented       ? 405
                     : why.code() == ErrorCode::kResourceExhausted ? 431
                                                                   : 400;
  return http_response(status, why.message() + "\n");
}

bool shows_key(const ScrapeRequest& request, const std::vector<std::string>& keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
    const std::string shown = "Bearer " + key;
    return request.authorization.size() == shown.size() &&
           sodium_memcmp(request.authorization.data(), shown.data(), shown.size()) == 0;
  });
}

std::string http_refusal(const ScrapeRequest& request, bool is_allowed) {
  // In this order: a stranger does not learn what there is.
  if (!is_allowed)
    return http_response(
        401, "show the key that `starling metrics --key` prints: Authorization: Bearer KEY\n",
        request.wants_body);
  if (request.path != "/metrics")
    return http_response(404, "there is /metrics\n", request.wants_body);
  return "";
}

std::string http_needs_tls() {
  return http_response(403,
                       "other machines read this over HTTPS alone: start the node with --tls-cert "
                       "and --tls-key, or read it on the node's own machine\n");
}

std::string http_is_off() {
  return http_response(403, "this node shows no metrics: it was started with --metrics off\n");
}

std::string http_response(int status, std::string_view body, bool with_body) {
  http::response<http::string_body> response(static_cast<http::status>(status), 11);
  response.set(http::field::content_type,
               status == 200 ? "text/plain; version=0.0.4; charset=utf-8" : "text/plain");
  if (status == 405) response.set(http::field::allow, "GET, HEAD");
  if (status == 401) response.set(http::field::www_authenticate, "Bearer");
  response.keep_alive(false);
  response.content_length(body.size());
  if (with_body) response.body() = body;
  std::ostringstream text;
  text << response.base() << response.body();
  return text.str();
}

}  // namespace runtime
