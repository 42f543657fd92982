#include "runtime/transport/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/core/check.h"
#include "runtime/core/thread.h"
#include "runtime/transport/simulated_network.h"

namespace runtime::transport_detail {

namespace {

using GenericEndpoint = asio::generic::stream_protocol::endpoint;

// Keep-alive finds a machine that vanished without a word; leases find it sooner, this is for
// connections without one. A connection that says nothing, to a machine that is gone, ends after
// seven seconds; one with something to say: Channel::watch_silence.
constexpr int kKeepAliveIdleSeconds = 4;
constexpr int kKeepAliveIntervalSeconds = 1;
constexpr int kKeepAliveProbes = 3;

Status explain_connect(const boost::system::error_code& ec, const std::string& where,
                       bool is_unix) {
  if (ec == asio::error::operation_aborted) return cancelled(where + ": cancelled");
  if (ec == asio::error::connection_refused)
    return unavailable(where + ": nothing listens there (connection refused)");
  if (is_unix && ec.value() == ENOENT)
    return unavailable(where + ": no such socket; the process behind it has ended");
  Status status = from_asio(ec, where);
  // Not found and the like mean here that the peer cannot be reached.
  return status.code() == ErrorCode::kInvalidArgument && ec.value() != EACCES
             ? unavailable(status.message())
             : status;
}

asio::awaitable<Result<std::vector<GenericEndpoint>>> resolve(Endpoint endpoint) {
  std::vector<GenericEndpoint> found;
  if (endpoint.is_unix()) {
    found.emplace_back(asio::local::stream_protocol::endpoint(endpoint.unix_path));
    co_return found;
  }
  boost::system::error_code ec;
  auto numeric = asio::ip::make_address(endpoint.host, ec);
  if (!ec) {
    found.emplace_back(asio::ip::tcp::endpoint(numeric, endpoint.port));
    co_return found;
  }
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  try {  // Asio makes a thread for the first name
    auto [failure, results] = co_await resolver.async_resolve(
        endpoint.host, std::to_string(endpoint.port), asio::as_tuple(asio::use_awaitable));
    if (failure)
      co_return invalid_argument(endpoint.to_string() +
                                 ": unknown host name: " + failure.message());
    for (const auto& result : results) found.emplace_back(result.endpoint());
  } catch (const boost::system::system_error& error) {
    co_return thread_limit_status(error.code().value()).with_context(endpoint.to_string());
  }
  co_return found;
}

// Whether a process accepts on the Unix socket file; a file left behind by a dead one refuses.
bool is_served(const Endpoint& endpoint) {
  FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  asio::local::stream_protocol::endpoint address(endpoint.unix_path);
  return ::connect(probe.get(), address.data(), static_cast<socklen_t>(address.size())) == 0 ||
         errno == EAGAIN;
}

Result<GenericEndpoint> bindable(const Endpoint& endpoint) {
  if (endpoint.is_unix()) {
    struct stat info {};
    if (::lstat(endpoint.unix_path.c_str(), &info) == 0) {
      if (!S_ISSOCK(info.st_mode))
        return invalid_argument(endpoint.to_string() + ": the file exists and is not a socket");
      if (is_served(endpoint))
        return unavailable(endpoint.to_string() +
                           ": address in use: another process listens there");
      ::unlink(endpoint.unix_path.c_str());
    }
    return GenericEndpoint(asio::local::stream_protocol::endpoint(endpoint.unix_path));
  }
  boost::system::error_code ec;
  auto address =
      asio::ip::make_address(endpoint.host == "localhost" ? "127.0.0.1" : endpoint.host, ec);
  if (ec)
    return invalid_argument(endpoint.to_string() +
                            ": listen on a numeric address, for instance 0.0.0.0");
  return GenericEndpoint(asio::ip::tcp::endpoint(address, endpoint.port));
}

}  // namespace

void TimedSocket::arm(Deadline deadline) {
  timer.expires_at(deadline);
  timer.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
    if (ec) return;
    self->expired = true;
    boost::system::error_code ignored;
    self->socket.close(ignored);
    if (auto tell = std::exchange(self->on_expired, nullptr)) tell();
  });
}

void TimedSocket::disarm() { timer.cancel(); }

Status TimedSocket::explain(Status status, const std::string& what) const {
  return status.code() == ErrorCode::kCancelled && expired ? deadline_exceeded(what) : status;
}

namespace {

asio::awaitable<Status> connect_simulated(SimulatedNetwork& simulated, TimedSocket& timed,
                                          Endpoint endpoint) {
  auto initiate = [](auto handler, SimulatedNetwork* network, TimedSocket* socket, Endpoint to) {
    auto waiting = std::make_shared<std::optional<decltype(handler)>>(std::move(handler));
    const auto finish = [](std::optional<decltype(handler)>* waiter, int fd, int error) {
      auto arrived =
          std::make_shared<FileDescriptor>(fd);  // closed without a waiter, or the loop ends first
      if (!*waiter) return;
      auto shared = std::make_shared<decltype(handler)>(std::move(**waiter));
      waiter->reset();
      asio::post(asio::get_associated_executor(*shared),
                 [shared, arrived, error] { std::move (*shared)(arrived, error); });
    };
    // The coroutine owns the socket: the simulation alone keeps the coroutine.
    socket->on_expired = [finish, weak = std::weak_ptr(waiting)] {
      if (auto still = weak.lock()) finish(still.get(), -1, ECANCELED);
    };
    network->connect(to,
                     [finish, waiting](int fd, int error) { finish(waiting.get(), fd, error); });
  };
  using Arrived = std::shared_ptr<FileDescriptor>;
  auto [fd, error] = co_await asio::async_initiate<const asio::as_tuple_t<asio::use_awaitable_t<>>,
                                                   void(Arrived, int)>(
      initiate, asio::as_tuple(asio::use_awaitable), &simulated, &timed, endpoint);
  timed.on_expired = nullptr;
  if (timed.expired) co_return cancelled(endpoint.to_string() + ": cancelled");
  if (error != 0)
    co_return explain_connect({error, boost::system::system_category()}, endpoint.to_string(),
                              endpoint.is_unix());
  boost::system::error_code ec;
  timed.socket.assign(asio::generic::stream_protocol(AF_UNIX, 0), fd->get(), ec);
  CHECK(!ec);
  fd->release();
  co_return Status();
}

}  // namespace

asio::awaitable<Status> connect_socket(TimedSocket& timed, Endpoint endpoint) {
  if (SimulatedNetwork* simulated = simulated_network())
    co_return co_await connect_simulated(*simulated, timed, endpoint);
  const std::string where = endpoint.to_string();
  auto addresses = co_await resolve(endpoint);
  if (!addresses.ok()) co_return addresses.status();
  Status status = unavailable(where + ": no address");
  for (const GenericEndpoint& address : *addresses) {
    if (timed.expired) break;
    boost::system::error_code ignored;
    timed.socket.close(ignored);
    auto [ec] = co_await timed.socket.async_connect(address, asio::as_tuple(asio::use_awaitable));
    if (!ec) {
      tune(timed.socket);
      co_return Status();
    }
    status = explain_connect(ec, where, endpoint.is_unix());
  }
  co_return status;
}

Result<Acceptor> bind_listener(asio::io_context& context, Endpoint& endpoint) {
  auto address = bindable(endpoint);
  if (!address.ok()) return address.status();
  const std::string where = endpoint.to_string();
  Acceptor acceptor(context);
  boost::system::error_code ec;
  acceptor.open(address->protocol(), ec);
  if (ec) return from_asio(ec, where);
  if (!endpoint.is_unix()) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  mode_t mask = 0;
  if (endpoint.is_unix()) mask = ::umask(0077);
  acceptor.bind(*address, ec);
  if (endpoint.is_unix()) ::umask(mask);
  if (ec == asio::error::address_in_use)
    return unavailable(where + ": address in use: another process listens there");
  if (ec) return from_asio(ec, where);
  acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec == asio::error::address_in_use)
    return unavailable(where + ": address in use: another process listens there");
  if (ec) return from_asio(ec, where);
  if (!endpoint.is_unix()) {
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(acceptor.native_handle(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
      return errno_status(errno, where);
    endpoint.port =
        ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  }
  return acceptor;
}

Result<ConnectionSocket> adopt_socket(asio::io_context& context, FileDescriptor fd) {
  int domain = 0, type = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0)
    return errno_status(errno, "adopted connection");
  size = sizeof type;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    return errno_status(errno, "adopted connection");
  if (type != SOCK_STREAM) return invalid_argument("adopted connection: not a stream socket");
  ConnectionSocket socket(context);
  boost::system::error_code ec;
  socket.assign(asio::generic::stream_protocol(domain, 0), fd.get(), ec);
  if (ec) return from_asio(ec, "adopted connection");
  fd.release();
  return socket;
}

void tune(ConnectionSocket& socket) {
  int fd = socket.native_handle();
  int domain = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain == AF_UNIX) return;
  auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

bool is_unacknowledged(ConnectionSocket& socket, std::chrono::milliseconds since) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_unacked > 0 && std::chrono::milliseconds(info.tcpi_last_ack_recv) >= since;
}

std::string peer_address(ConnectionSocket& socket, const Endpoint& listener) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(socket.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size) != 0)
    return "a closed connection";
  if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) {
    asio::ip::tcp::endpoint address;
    address.resize(size);
    std::memcpy(address.data(), &peer, size);
    return Endpoint::tcp(address.address().to_string(), address.port()).to_string();
  }
  if (simulated_network() != nullptr &&
      size > sizeof peer.ss_family +
                 1) {  // a simulated TCP connection has its address as an abstract name
    return std::string(reinterpret_cast<const char*>(&peer) + sizeof peer.ss_family + 1,
                       size - sizeof peer.ss_family - 1);
  }
  return listener.is_unix() ? listener.to_string() : "unix:adopted";
}

std::string peer_source(ConnectionSocket& socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(socket.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size) != 0)
    return {};
  const auto bytes = [](const void* begin, std::size_t count) {
    return std::string(static_cast<const char*>(begin), count);
  };
  if (peer.ss_family == AF_INET) return bytes(&reinterpret_cast<sockaddr_in&>(peer).sin_addr, 4);
  if (peer.ss_family != AF_INET6) return {};
  const in6_addr& address = reinterpret_cast<sockaddr_in6&>(peer).sin6_addr;
  return IN6_IS_ADDR_V4MAPPED(&address) ? bytes(address.s6_addr + 12, 4)
                                        : bytes(address.s6_addr, 8);
}

}  // namespace runtime::transport_detail
