// The floor under a call: a tight ping-pong over a bare socket with another process.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <vector>

#include "bench/support/take.h"
#include "bench/support/timing.h"

namespace bench {

inline constexpr std::size_t kMessageBytes = 128;  // about what a small call takes on the wire

inline bool read_all(int fd, char* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    ssize_t got = ::recv(fd, data + done, size - done, 0);
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

/// Sends every message back until the peer hangs up.
inline void echo(int fd) {
  char bytes[kMessageBytes];
  while (read_all(fd, bytes, sizeof bytes)) (void)::send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
}

/// The same; ends the process.
[[noreturn]] inline void echo_and_exit(int fd) {
  echo(fd);
  ::_exit(0);
}

/// Seconds per round trip with a process that echoes.
inline double ping_pong(int fd, double seconds) {
  char bytes[kMessageBytes] = {};
  return time_per_call(seconds, 100, [&] {
    if (::send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) != sizeof bytes ||
        !read_all(fd, bytes, sizeof bytes))
      fail("ping-pong");
  });
}

inline double unix_round_trip(double seconds) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("socketpair");
  pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(pair[0]);
    echo_and_exit(pair[1]);
  }
  ::close(pair[1]);
  double result = ping_pong(pair[0], seconds);
  ::close(pair[0]);
  ::waitpid(child, nullptr, 0);
  return result;
}

/// A TCP connection without Nagle's delay to a child process. The child first runs `enter`, which
/// takes it to where `address` is, and then serves the connection with `serve(fd)`.
template <class Enter, class Serve>
int connect_to_child(const char* address, pid_t& child, Enter&& enter, Serve&& serve) {
  int ready[2];
  if (::pipe(ready) != 0) fail("pipe");
  int on = 1;
  sockaddr_in name{};
  name.sin_family = AF_INET;
  ::inet_pton(AF_INET, address, &name.sin_addr);
  child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    enter();
    int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof name;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
        ::listen(listener, 1) != 0)
      ::_exit(1);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size);
    (void)!::write(ready[1], &name.sin_port, sizeof name.sin_port);
    int fd = ::accept(listener, nullptr, nullptr);
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    serve(fd);
    ::_exit(0);
  }
  ::close(ready[1]);
  if (::read(ready[0], &name.sin_port, sizeof name.sin_port) != sizeof name.sin_port)
    fail("the serving process ended");
  ::close(ready[0]);
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0)
    fail("connect to the serving process");
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

template <class Enter>
double tcp_round_trip(const char* address, double seconds, Enter&& enter) {
  pid_t child = 0;
  int fd = connect_to_child(address, child, enter, [](int peer) { echo_and_exit(peer); });
  double result = ping_pong(fd, seconds);
  ::close(fd);
  ::waitpid(child, nullptr, 0);
  return result;
}

/// Seconds to receive `bytes` into memory that has been touched: the median of a few.
template <class Enter>
double tcp_copy(const char* address, std::size_t bytes, Enter&& enter) {
  constexpr int kCopies = 3;
  pid_t child = 0;
  int fd = connect_to_child(address, child, enter, [bytes](int peer) {
    std::vector<char> from(bytes, 1);
    for (char go; read_all(peer, &go, 1);) {
      for (std::size_t done = 0; done < from.size();) {
        ssize_t sent = ::send(peer, from.data() + done, from.size() - done, MSG_NOSIGNAL);
        if (sent <= 0) return;
        done += static_cast<std::size_t>(sent);
      }
    }
  });
  std::vector<char> to(bytes, 2);
  std::vector<double> taken;
  for (int i = 0; i < kCopies; ++i) {
    auto start = Clock::now();
    if (::send(fd, "g", 1, MSG_NOSIGNAL) != 1 || !read_all(fd, to.data(), to.size()))
      fail("copy over a socket");
    taken.push_back(seconds_since(start));
  }
  ::close(fd);
  ::waitpid(child, nullptr, 0);
  return median(std::move(taken));
}

}  // namespace bench
