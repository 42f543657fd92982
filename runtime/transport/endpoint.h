// Endpoint: the address at which a process listens, as users and messages write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace runtime {

/// A Unix socket path or a TCP host and port, and optionally a worker that is reached through the
/// node listening there. Text form: "unix:/path", "HOST:PORT" ("[::1]:7000" for IPv6), either with
/// "#<worker id, 32 hex digits>" behind it.
struct Endpoint {
  std::string unix_path;  // empty for TCP
  std::string host;       // a name or numeric address; "0.0.0.0" or "::" when listening on all
  std::uint16_t port = 0;
  WorkerId target;  // none: any listener

  bool is_unix() const { return !unix_path.empty(); }
  /// Whether only this machine reaches it.
  bool is_loopback() const {
    return is_unix() || host == "localhost" || host == "::1" || host.starts_with("127.");
  }
  bool operator==(const Endpoint&) const = default;

  /// The same place, addressed to a worker behind it.
  Endpoint for_worker(WorkerId worker) const;

  std::string to_string() const;

  /// Errors: kInvalidArgument naming the text and what is wrong with it. Port 0 is allowed (a
  /// listener picks one).
  static Result<Endpoint> parse(std::string_view text);
  /// Errors: kInvalidArgument when the path is empty or longer than a Unix socket address holds
  /// (107 bytes).
  static Result<Endpoint> unix_socket(std::string path);
  static Endpoint tcp(std::string host, std::uint16_t port);
};

}  // namespace runtime
