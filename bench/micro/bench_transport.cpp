// The cost of a channel against the floor: its round trip against a ping-pong on a raw Unix socket
// (and the same on TCP). Also requests in flight, and payload throughput. The peer is another
// process.
//   bench_transport [--json] [--seconds S]
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/figures.h"
#include "bench/support/options.h"
#include "bench/support/raw_socket.h"
#include "bench/support/take.h"
#include "bench/support/timing.h"
#include "runtime/transport/listener.h"

namespace {

using namespace runtime;
using namespace bench;

int tcp_listener(int* port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, 1) != 0)
    fail("listen");
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  *port = ntohs(address.sin_port);
  return fd;
}

int tcp_connect(int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("connect");
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

Credentials credentials_of(Role role) {
  Credentials credentials;
  credentials.token = "bench";
  credentials.role = role;
  return credentials;
}

struct Ports {
  std::uint16_t sealed, plain;
};

/// The peer process's channel side: one thread takes requests from the loop and answers them, as an
/// actor's does.
void serve_channel(const std::string& path, int ready) {
  EventLoop loop;
  Event arrived(loop);
  std::vector<std::pair<std::shared_ptr<Channel>, Message>>
      mailbox;  // filled on the loop, emptied by this thread
  std::mutex mutex;
  ListenerCallbacks callbacks;
  callbacks.on_channel = [&](std::shared_ptr<Channel> channel) {
    channel->set_handler([&](const std::shared_ptr<Channel>& from, Message message) {
      std::lock_guard lock(mutex);
      if (mailbox.empty()) arrived.set();
      mailbox.emplace_back(from, std::move(message));
    });
  };
  auto serve = [&](const Endpoint& endpoint, bool plain = false) {
    ListenerOptions options;
    options.plain = plain;
    auto listener =
        Listener::listen(loop, endpoint, credentials_of(Role::kWorker), callbacks, options);
    if (!listener.ok()) fail(listener.status().to_string());
    return std::move(*listener);
  };
  auto unix_listener = serve(*Endpoint::unix_socket(path));
  auto tcp = serve(Endpoint::tcp("127.0.0.1", 0));
  auto plain_tcp = serve(Endpoint::tcp("127.0.0.1", 0), /*plain=*/true);
  const Ports ports{tcp->endpoint().port, plain_tcp->endpoint().port};
  if (::write(ready, &ports, sizeof ports) != sizeof ports) fail("pipe");
  std::vector<std::pair<std::shared_ptr<Channel>, Message>> batch;
  while (loop.run_until(arrived, Deadline::max())) {
    {
      std::lock_guard lock(mutex);
      arrived.reset();
      batch.swap(mailbox);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      auto& [channel, message] = batch[i];
      if (message.id == 0) continue;
      Message reply = reply_to(message, message.meta);
      (void)channel->send(std::move(reply), i + 1 == batch.size() ? Flush::kNow : Flush::kSoon);
    }
    batch.clear();
  }
}

Message request_of(std::size_t payload_bytes, const Buffer& payload) {
  static const Buffer meta = Buffer::copy_of(std::string(kMessageBytes - FrameHeader::kBytes, 'm'));
  Message message;
  message.kind = FrameKind::kCall;
  message.meta = meta;
  if (payload_bytes > 0) message.payload = payload.slice(0, payload_bytes);
  return message;
}

double channel_round_trip(const std::shared_ptr<Channel>& channel, double seconds) {
  return time_per_call(seconds, 100, [&] {
    auto reply =
        channel->request_blocking(request_of(0, {}), deadline_after(std::chrono::seconds(30)));
    if (!reply.ok()) fail(reply.status().to_string());
  });
}

/// Seconds per request with up to `window` in flight.
double channel_pipelined(const std::shared_ptr<Channel>& channel, std::size_t payload_bytes,
                         int window, double seconds) {
  EventLoop& loop = channel->loop();
  Buffer payload = Buffer::copy_of(std::string(std::max<std::size_t>(payload_bytes, 1), 'p'));
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    auto start = Clock::now();
    long requests = 0;
    while (seconds_since(start) < seconds / kRounds) {
      Event done(loop);
      int answered = 0;
      for (int i = 0; i < window; ++i) {
        channel->request(request_of(payload_bytes, payload),
                         deadline_after(std::chrono::seconds(30)), [&](Result<Message> reply) {
                           if (!reply.ok()) fail(reply.status().to_string());
                           if (++answered == window) done.set();
                         });
      }
      if (!loop.run_until(done, Deadline::max())) fail("the loop stopped");
      requests += window;
    }
    rounds.push_back(seconds_since(start) / static_cast<double>(requests));
  }
  return median(rounds);
}

/// Seconds each.
struct ChannelFigures {
  double round_trip = 0, pipelined = 0, payload = 0;
};

std::shared_ptr<Channel> connect_to(EventLoop& loop, const Endpoint& endpoint) {
  auto channel = connect(loop, endpoint, credentials_of(Role::kDriver));
  if (!channel.ok()) fail(channel.status().to_string());
  return *channel;
}

constexpr std::size_t kPayloadBytes = 1 << 20;

ChannelFigures measure(const std::shared_ptr<Channel>& channel, double seconds) {
  const ChannelFigures figures{channel_round_trip(channel, seconds),
                               channel_pipelined(channel, 0, 1000, seconds),
                               channel_pipelined(channel, kPayloadBytes, 16, seconds)};
  channel->close(cancelled("done"));
  return figures;
}

struct Options {
  bool json = false;
  double seconds = 1.0;
};

/// Round trips over sockets alone, in seconds.
struct RawFigures {
  double uds = 0, tcp = 0;
};

/// A process that sends back what comes over a socket pair, and then over TCP.
class RawPeer {
 public:
  /// Before any thread starts.
  RawPeer() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair_) != 0) fail("socketpair");
    const int listener = tcp_listener(&port_);
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(pair_[0]);
      echo(pair_[1]);
      int tcp = ::accept(listener, nullptr, nullptr);
      int on = 1;
      ::setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      echo(tcp);
      ::_exit(0);
    }
    ::close(pair_[1]);
  }

  /// Once.
  RawFigures measure(double seconds) {
    RawFigures figures;
    figures.uds = ping_pong(pair_[0], seconds);
    ::close(pair_[0]);
    int tcp = tcp_connect(port_);
    figures.tcp = ping_pong(tcp, seconds);
    ::close(tcp);
    ::waitpid(process_, nullptr, 0);
    return figures;
  }

  int socket() const { return pair_[0]; }

 private:
  int pair_[2];
  int port_ = 0;
  pid_t process_ = 0;
};

void print(const RawFigures& raw, const ChannelFigures& uds, const ChannelFigures& sealed,
           const ChannelFigures& plain, bool json) {
  const nlohmann::ordered_json figures = {
      {"uds_round_trip_us", raw.uds * 1e6},
      {"channel_uds_round_trip_us", uds.round_trip * 1e6},
      {"channel_uds_over_raw", uds.round_trip / raw.uds},
      {"channel_uds_pipelined_per_s", 1 / uds.pipelined},
      {"channel_uds_payload_gbps", static_cast<double>(kPayloadBytes) / uds.payload / 1e9},
      {"tcp_round_trip_us", raw.tcp * 1e6},
      {"channel_tcp_round_trip_us", sealed.round_trip * 1e6},
      {"channel_tcp_over_raw", sealed.round_trip / raw.tcp},
      {"channel_tcp_pipelined_per_s", 1 / sealed.pipelined},
      {"channel_tcp_payload_gbps", static_cast<double>(kPayloadBytes) / sealed.payload / 1e9},
      {"plain_tcp_round_trip_us", plain.round_trip * 1e6},
      {"plain_tcp_pipelined_per_s", 1 / plain.pipelined},
      {"plain_tcp_payload_gbps", static_cast<double>(kPayloadBytes) / plain.payload / 1e9},
      {"encrypted_over_plain_round_trip", sealed.round_trip / plain.round_trip},
      {"encrypted_over_plain_pipelined", plain.pipelined / sealed.pipelined},
      {"encrypted_over_plain_payload", plain.payload / sealed.payload},
  };
  print_figures(figures, json);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  read_options(argc, argv, {{"--json", &options.json}, {"--seconds", &options.seconds}});
  char folder[] = "/tmp/starling-bench-XXXXXX";
  if (::mkdtemp(folder) == nullptr) fail("mkdtemp");
  const std::string path = std::string(folder) + "/s";
  int ready[2];
  if (::pipe(ready) != 0) fail("pipe");
  RawPeer raw_peer;
  const pid_t parent = ::getpid();
  const pid_t channel_peer = ::fork();
  if (channel_peer == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::close(raw_peer.socket());
    serve_channel(path, ready[1]);
    ::_exit(0);
  }
  Ports ports{};
  if (::read(ready[0], &ports, sizeof ports) != sizeof ports) fail("the peer did not start");
  const RawFigures raw = raw_peer.measure(options.seconds);
  EventLoop loop;
  const ChannelFigures uds =
      measure(connect_to(loop, *Endpoint::unix_socket(path)), options.seconds);
  const auto over_tcp = [&](std::uint16_t port) {
    return measure(connect_to(loop, Endpoint::tcp("127.0.0.1", port)), options.seconds);
  };
  const ChannelFigures plain = over_tcp(ports.plain);
  const ChannelFigures sealed = over_tcp(ports.sealed);
  ::kill(channel_peer, SIGKILL);
  ::waitpid(channel_peer, nullptr, 0);
  ::unlink(path.c_str());
  ::rmdir(folder);
  print(raw, uds, sealed, plain, options.json);
}
