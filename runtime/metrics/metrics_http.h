// Requests of a scraper and their answers: HTTP without the sockets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace runtime {

inline constexpr std::size_t kHttpRequestBytesMax = 8 << 10;

/// A request's head, as far as it matters here.
struct ScrapeRequest {
  bool complete = false;      // else more has to be read
  bool wants_body = true;     // not of HEAD
  std::string path;           // without what follows a '?'
  std::string authorization;  // the header
};

/// Reads a request that begins with these bytes. Errors: kInvalidArgument (malformed, a body),
/// kResourceExhausted (too long), kUnimplemented (another method than GET and HEAD).
Result<ScrapeRequest> parse_http_request(std::string_view bytes);

/// The answer after such an error: 400, 431, 405.
std::string http_refusal(const Status& why);
/// Whether the request shows one of the keys.
bool shows_key(const ScrapeRequest& request, const std::vector<std::string>& keys);
/// What goes back when the request is not for the metrics: 401, 404; empty when it is.
std::string http_refusal(const ScrapeRequest& request, bool is_allowed);
/// What a client on another machine is told that comes without TLS: 403, and the cure.
std::string http_needs_tls();
/// The answer to requests at a node without metrics: 403.
std::string http_is_off();
/// "HTTP/1.1 200 OK" and so on, with the connection's end announced.
std::string http_response(int status, std::string_view body, bool with_body = true);

}  // namespace runtime
