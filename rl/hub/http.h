// HTTP requests over libcurl: the one file that adapts it. Redirects are left to the caller, who
// knows which hosts may see the token.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

struct HttpRequest {
  std::string url;                        // http:// or https://
  bool head = false;                      // HEAD instead of GET
  std::vector<std::string> headers = {};  // "Name: value"
  std::chrono::seconds silence_max{30};
  std::chrono::seconds connect_max{10};
  std::size_t body_bytes_max = 64 << 20;  // where there is no sink

  /// Gets the body of a 2xx answer in pieces; a failure ends the request and is its result. Null:
  /// the body is kept in the answer.
  std::function<runtime::Status(std::span<const std::byte>)> sink = {};
  /// Called with status and headers before the body of a 2xx answer goes to the sink.
  std::function<runtime::Status(int status, const std::map<std::string, std::string>& headers)>
      begin = {};
  /// Asked now and then; true ends the request with kCancelled.
  std::function<bool()> cancelled = {};
  std::optional<std::string> post = {};    // POST with this body
  std::chrono::milliseconds total_max{0};  // of all of it; 0: no limit
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of errors too, of which the first 64 KiB are kept
  /// The value, or empty.
  const std::string& header(const std::string& lower_case_name) const;
};

/// One connection that is kept between requests. Not thread-safe: one for each thread.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// An answer of any status is a success. kUnavailable: no connection, a broken one, silence; the
  /// message says which and names the host. Certificates are checked against the system's
  /// authorities, or REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE; proxies are those of the
  /// environment.
  runtime::Result<HttpAnswer> perform(const HttpRequest& request);

 private:
  void* curl_;
};

/// "a b" as "a%20b": a part of a path, slashes included.
std::string percent_encoded(const std::string& text);

}  // namespace rl
