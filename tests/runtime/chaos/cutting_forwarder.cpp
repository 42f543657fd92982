#include "cutting_forwarder.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "tests/support/listening_socket.h"

namespace runtime::test {
namespace {

constexpr int kPollMs = 20;  // how late a stop may be noticed

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::send(fd, data, size, MSG_NOSIGNAL);
    if (count <= 0) return false;
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

CuttingForwarder::CuttingForwarder(const std::string& host, const std::string& target_host,
                                   std::uint16_t port, std::uint64_t bytes_max, unsigned seed)
    : target_host_(target_host), port_(port), bytes_max_(bytes_max), random_(seed) {
  listener_ = support::listen_at(host, port);
  if (!listener_) return;
  thread_ = std::thread([this] { serve(); });
}

CuttingForwarder::~CuttingForwarder() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void CuttingForwarder::serve() {
  std::vector<std::thread> connections;
  while (!stopping_) {
    pollfd waiting{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, kPollMs) <= 0) continue;
    FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client) continue;
    const std::uint64_t bytes = 1 + random_() % bytes_max_;
    connections.emplace_back(
        [this, bytes, client = std::move(client)]() mutable { forward(std::move(client), bytes); });
  }
  for (std::thread& connection : connections) connection.join();
}

void CuttingForwarder::forward(FileDescriptor client, std::uint64_t bytes_left) {
  FileDescriptor server = support::connect_to(target_host_, port_);
  if (!server) return;
  const int yes = 1;
  for (int fd : {client.get(), server.get()})
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  char buffer[16 << 10];
  while (!stopping_) {
    pollfd ends[2] = {{.fd = client.get(), .events = POLLIN, .revents = 0},
                      {.fd = server.get(), .events = POLLIN, .revents = 0}};
    if (::poll(ends, 2, kPollMs) < 0) return;
    for (int i = 0; i < 2; ++i) {
      if (ends[i].revents == 0) continue;
      const ssize_t count = ::recv(ends[i].fd, buffer, sizeof buffer, 0);
      if (count <= 0) return;
      std::size_t pass = static_cast<std::size_t>(count);
      const bool healed =
          healed_;  // looked at once: what is cut off must not be followed by anything
      if (!healed) pass = static_cast<std::size_t>(std::min<std::uint64_t>(pass, bytes_left));
      if (!write_all(ends[1 - i].fd, buffer, pass)) return;
      if (healed) continue;
      bytes_left -= pass;
      if (bytes_left == 0) {
        ++cuts_;
        return;
      }
    }
  }
}

}  // namespace runtime::test
