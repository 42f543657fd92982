#include "runtime/transport/endpoint.h"

#include <charconv>

namespace runtime {

namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::size_t kUnixPathMax = 107;
constexpr std::size_t kHostMax = 255;
constexpr std::size_t kIdDigits = 32;

Status bad(std::string_view text, std::string_view why) {
  return invalid_argument("address '" + std::string(text.substr(0, 300)) +
                          "': " + std::string(why));
}

// "#<32 hex digits>" at the end names a worker; any other '#' is part of a path.
void split_target(std::string_view& text, WorkerId& target) {
  if (text.size() <= kIdDigits || text[text.size() - kIdDigits - 1] != '#') return;
  auto id = WorkerId::from_hex(text.substr(text.size() - kIdDigits));
  if (!id.ok()) return;
  target = *id;
  text.remove_suffix(kIdDigits + 1);
}

}  // namespace

Endpoint Endpoint::for_worker(WorkerId worker) const {
  Endpoint copy = *this;
  copy.target = worker;
  return copy;
}

std::string Endpoint::to_string() const {
  std::string text = is_unix() ? std::string(kUnixPrefix) + unix_path
                     : host.find(':') != std::string::npos
                         ? "[" + host + "]:" + std::to_string(port)
                         : host + ":" + std::to_string(port);
  if (!target.is_none()) text += "#" + target.hex();
  return text;
}

Result<Endpoint> Endpoint::parse(std::string_view text) {
  const std::string_view whole = text;
  Endpoint endpoint;
  split_target(text, endpoint.target);
  if (text.starts_with(kUnixPrefix)) {
    auto parsed = unix_socket(std::string(text.substr(kUnixPrefix.size())));
    if (!parsed.ok()) return parsed.status();
    parsed->target = endpoint.target;
    return parsed;
  }
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad(whole, "expected HOST:PORT or unix:/path");
  std::string_view host = text.substr(0, colon);
  std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad(whole, "an IPv6 address is written [ADDRESS]:PORT");
  }
  if (host.empty()) return bad(whole, "the host is missing");
  if (host.size() > kHostMax || host.find('\0') != std::string_view::npos)
    return bad(whole, "not a host name");
  unsigned value = 0;
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (error != std::errc() || end != port.data() + port.size() || value > 65535) {
    return bad(whole, "the port must be a number from 0 to 65535");
  }
  endpoint.host = host;
  endpoint.port = static_cast<std::uint16_t>(value);
  return endpoint;
}

Result<Endpoint> Endpoint::unix_socket(std::string path) {
  if (path.empty()) return bad("unix:", "the socket's path is missing");
  if (path.size() > kUnixPathMax) return bad(path, "a Unix socket's path has at most 107 bytes");
  if (path.find('\0') != std::string::npos) return bad(path, "a path holds no zero byte");
  Endpoint endpoint;
  endpoint.unix_path = std::move(path);
  return endpoint;
}

Endpoint Endpoint::tcp(std::string host, std::uint16_t port) {
  Endpoint endpoint;
  endpoint.host = std::move(host);
  endpoint.port = port;
  return endpoint;
}

}  // namespace runtime
