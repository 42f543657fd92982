// One HTTP request to a metadata endpoint, which may hang, lie, or be something else.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/result.h"
#include "runtime/transport/event_loop.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

struct HttpRequest {
  bool put = false;  // else GET
  std::string host;
  std::string port;
  std::string target;  // "/latest/api/token"
  std::vector<std::pair<std::string, std::string>> headers{};
};

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};  // names in small letters

  /// Empty: there is none.
  std::string header(const std::string& name) const;
};

/// Asks, over its own connection; `done` runs once on the loop, at the deadline at the latest,
/// however slowly the answer drips. On the loop. Errors: kUnavailable (no process listens, closed
/// early), kDeadlineExceeded, kInvalidArgument (no HTTP, or more than `bytes_max` of a body, or 8
/// KiB of headers).
void http_request(EventLoop& loop, HttpRequest request, std::size_t bytes_max, Deadline deadline,
                  UniqueFunction<void(Result<HttpAnswer>)> done);

}  // namespace runtime
