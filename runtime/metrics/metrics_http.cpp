#include "runtime/metrics/metrics_http.h"

#include <sodium.h>

#include <boost/beast/http.hpp>
#include <sstream>

#include "runtime/core/asio.h"

namespace runtime {

namespace http = boost::beast::http;

Result<ScrapeRequest> parse_http_request(std::string_view bytes) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kHttpRequestBytesMax);
  parser.eager(false);
  boost::system::error_code error;
  parser.put(asio::buffer(bytes.data(), bytes.size()), error);
  if (error == http::error::need_more) {
    if (bytes.size() >= kHttpRequestBytesMax) return invalid_argument("a request of more than " + std::to_string(kHttpRequestBytesMax) + " bytes");
    return ScrapeRequest();
  }
  if (error) return invalid_argument("not an HTTP request: " + error.message());
  if (!parser.is_header_done()) return ScrapeRequest();
  const auto& head = parser.get();
  if (head.method() != http::verb::get && head.method() != http::verb::head) return invalid_argument("only GET and HEAD are served");
  ScrapeRequest request;
  request.complete = true;
  request.wants_body = head.method() == http::verb::get;
  request.path = std::string(head.target().substr(0, head.target().find('?')));
  request.authorization = std::string(head[http::field::authorization]);
  return request;
}

std::string http_refusal(const ScrapeRequest& request, const std::string& key) {
  const std::string shown = "Bearer " + key;
  const bool may = key.empty() || (request.authorization.size() == shown.size() &&
                                   sodium_memcmp(request.authorization.data(), shown.data(), shown.size()) == 0);
  // In this order: a stranger does not learn what there is.
  if (!may) return http_response(401, "show the key that `starling metrics --key` prints: Authorization: Bearer KEY\n", request.wants_body);
  if (request.path != "/metrics") return http_response(404, "there is /metrics\n", request.wants_body);
  return "";
}

std::string http_response(int status, std::string_view body, bool with_body) {
  http::response<http::string_body> response(static_cast<http::status>(status), 11);
  response.set(http::field::content_type, status == 200 ? "text/plain; version=0.0.4; charset=utf-8" : "text/plain");
  if (status == 401) response.set(http::field::www_authenticate, "Bearer");
  response.keep_alive(false);
  response.content_length(body.size());
  if (with_body) response.body() = body;
  std::ostringstream text;
  text << response.base() << response.body();
  return text.str();
}

}  // namespace runtime
