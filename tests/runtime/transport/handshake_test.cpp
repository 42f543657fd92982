#include "runtime/transport/handshake.h"

#include <fcntl.h>
#include <netinet/in.h>

#include <atomic>
#include <random>
#include <thread>

#include "fixture.h"
#include "runtime/core/version.h"
#include "runtime/transport/capnp_codec.h"
#include "runtime/transport/frame_writer.h"
#include "runtime/transport/noise.h"
#include "runtime/transport/refusal_log.h"
#include "tests/support/eventually.h"

namespace runtime {
namespace {

/// What a caller sends before it hears anything.
constexpr std::size_t kFirstFlightBytes = Preamble::kBytes + NoiseHandshake::kOverheadBytes;

using Refusals = std::shared_ptr<std::promise<Status>>;

struct Server {
  explicit Server(Credentials credentials = credentials_of(Role::kNode),
                  ListenerOptions options = {}, bool unix_socket = false) {
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](std::shared_ptr<Channel> channel) {
      peers.push_back(channel->peer());
      channel->set_handler([](const std::shared_ptr<Channel>& from, Message message) {
        (void)from->send(reply_to(message, message.meta));
      });
    };
    callbacks.on_refused = [this](const std::string&, const Status& why) {
      ++refused;
      if (!refusal_told.exchange(true)) refusal.set_value(why);
    };
    Endpoint where =
        unix_socket ? *Endpoint::unix_socket(dir.file("s")) : Endpoint::tcp("127.0.0.1", 0);
    auto bound =
        Listener::listen(loop, where, std::move(credentials), std::move(callbacks), options);
    EXPECT_TRUE(bound.ok()) << bound.status().to_string();
    listener = std::move(*bound);
  }

  int raw_connect() const {
    int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listener->endpoint().port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  support::TemporaryFolder dir;
  EventLoop loop;
  std::vector<PeerInfo> peers;
  std::promise<Status> refusal;
  std::atomic<bool> refusal_told{false};
  std::atomic<int> refused{0};
  std::unique_ptr<Listener> listener;
};

/// Says the given bytes to each caller, then closes (or waits).
struct OddServer {
  OddServer(std::string greeting, bool closes_after)
      : says(std::move(greeting)), closes(closes_after) {
    fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 8), 0);
    socklen_t size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    endpoint = Endpoint::tcp("127.0.0.1", ntohs(address.sin_port));
    thread = std::thread([this] {
      int peer = ::accept(fd, nullptr, nullptr);
      char bytes[kFirstFlightBytes];
      EXPECT_EQ(::recv(peer, bytes, sizeof bytes, MSG_WAITALL),
                static_cast<ssize_t>(kFirstFlightBytes));
      EXPECT_EQ(::send(peer, says.data(), says.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(says.size()));
      if (!closes) (void)::recv(peer, bytes, sizeof bytes, 0);
      ::close(peer);
    });
  }
  ~OddServer() {
    thread.join();
    ::close(fd);
  }
  std::string says;
  bool closes;
  int fd;
  Endpoint endpoint;
  std::thread thread;
};

TEST(Handshake, TellsEachSideWhoTheOtherIs) {
  Credentials own = credentials_of(Role::kNode);
  own.node = NodeId::random();
  own.cluster = ClusterId::random();
  own.incarnation = 7;
  Server server(own, {}, true);
  EventLoop loop;
  Credentials caller = credentials_of(Role::kDriver);
  caller.node = own.node;
  auto channel = connect(loop, server.listener->endpoint(), caller);
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  const PeerInfo& peer = (*channel)->peer();
  EXPECT_EQ(peer.role, Role::kNode);
  EXPECT_EQ(peer.node, own.node);
  EXPECT_EQ(peer.cluster, own.cluster);
  EXPECT_EQ(peer.incarnation, 7u);
  EXPECT_EQ(peer.protocol, kProtocolMax);
  EXPECT_EQ(peer.version, kRelease);
  EXPECT_EQ(peer.pid, ::getpid());
  ASSERT_TRUE(
      (*channel)
          ->request_blocking(text_message(FrameKind::kCall, "x"), deadline_after(seconds(10)))
          .ok());
  ASSERT_EQ(server.peers.size(), 1u);
  EXPECT_EQ(server.peers[0].role, Role::kDriver);
  EXPECT_EQ(server.peers[0].pid, ::getpid());
}

TEST(Handshake, RefusesAWrongTokenOnBothSides) {
  Server server;
  EventLoop loop;
  auto channel = connect(loop, server.listener->endpoint(), credentials_of(Role::kDriver, "guess"));
  EXPECT_EQ(channel.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(channel.status().message().find("wrong token"), std::string::npos)
      << channel.status().message();
  Status seen = server.refusal.get_future().get();
  EXPECT_NE(seen.message().find("wrong token"), std::string::npos) << seen.message();
  EXPECT_TRUE(server.peers.empty());
}

TEST(Handshake, RefusesAnotherCluster) {
  Credentials own = credentials_of(Role::kNode);
  own.cluster = ClusterId::random();
  Server server(own);
  EventLoop loop;
  Credentials caller = credentials_of(Role::kNode);
  caller.cluster = ClusterId::random();
  auto channel = connect(loop, server.listener->endpoint(), caller);
  EXPECT_EQ(channel.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(channel.status().message().find("belongs to cluster"), std::string::npos)
      << channel.status().message();
  EXPECT_EQ(server.refusal.get_future().get().code(), ErrorCode::kInvalidArgument);
}

TEST(Handshake, RefusesAnOlderIncarnation) {
  Credentials own = credentials_of(Role::kNode);
  own.incarnation = 3;
  Server server(own);
  EventLoop loop;
  ConnectOptions options;
  options.incarnation_min = 4;
  auto channel = connect(loop, server.listener->endpoint(), credentials_of(Role::kDriver), options);
  EXPECT_EQ(channel.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(channel.status().message().find("incarnation 3 is older than 4"), std::string::npos);
}

TEST(Handshake, SaysThatNothingListens) {
  EventLoop loop;
  auto tcp = connect(loop, Endpoint::tcp("127.0.0.1", 1), credentials_of(Role::kDriver));
  EXPECT_EQ(tcp.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(tcp.status().message().find("127.0.0.1:1: nothing listens there"), std::string::npos)
      << tcp.status().message();
  auto unix_socket = connect(loop, *Endpoint::parse("unix:/tmp/starling-no-such-socket"),
                             credentials_of(Role::kDriver));
  EXPECT_EQ(unix_socket.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(unix_socket.status().message().find("no such socket"), std::string::npos)
      << unix_socket.status().message();
}

TEST(Handshake, SaysThatAnotherServiceAnswers) {
  OddServer odd("HTTP/1.1 400 Bad Request\r\n\r\n", true);
  EventLoop loop;
  auto channel = connect(loop, odd.endpoint, credentials_of(Role::kDriver));
  EXPECT_EQ(channel.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(channel.status().message().find("not a Starling port"), std::string::npos)
      << channel.status().message();
}

TEST(Handshake, SaysThatThePeerClosed) {
  OddServer odd("STAR", true);
  EventLoop loop;
  auto channel = connect(loop, odd.endpoint, credentials_of(Role::kDriver));
  EXPECT_EQ(channel.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(channel.status().message().find("is this a Starling port?"), std::string::npos)
      << channel.status().message();
}

TEST(Handshake, EndsAtItsDeadlineWithASilentPeer) {
  OddServer odd("", false);
  EventLoop loop;
  ConnectOptions options;
  options.deadline = deadline_after(milliseconds(100));
  auto channel = connect(loop, odd.endpoint, credentials_of(Role::kDriver), options);
  EXPECT_EQ(channel.status().code(), ErrorCode::kDeadlineExceeded) << channel.status().to_string();
  EXPECT_NE(channel.status().message().find("no answer to the handshake"), std::string::npos)
      << channel.status().message();
}

TEST(Handshake, SaysThatTheWireVersionsDiffer) {
  std::string answer("STARLING\x09\0\0\0\0\0\0\0", 16);
  OddServer odd(answer, true);
  EventLoop loop;
  auto channel = connect(loop, odd.endpoint, credentials_of(Role::kDriver));
  EXPECT_EQ(channel.status().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(channel.status().message().find("speaks wire version 9"), std::string::npos)
      << channel.status().message();
}

TEST(Handshake, TellsAnUnknownVersionWhy) {
  // Of any version, also one whose preamble is longer than this one's.
  for (const std::uint16_t version : {1, 9}) {
    Server server;
    int fd = server.raw_connect();
    Preamble preamble;
    preamble.version = version;
    const auto raw = preamble.encode();
    const std::string first_flight(reinterpret_cast<const char*>(raw.data()),
                                   Preamble::kCommonBytes);
    const std::string nonce(32, 'n');
    ASSERT_EQ(::send(fd, (first_flight + nonce).data(), 64, 0), 64);
    std::string answer(256, '\0');
    ssize_t got = ::recv(fd, answer.data(), answer.size(), MSG_WAITALL);
    ASSERT_GT(got, 16);
    EXPECT_EQ(answer[8], static_cast<char>(kWireVersion));  // where each version looks for it
    EXPECT_NE(answer.find("wire version " + std::to_string(version) + " is not spoken here, only " +
                          std::to_string(kWireVersion)),
              std::string::npos);
    ::close(fd);
    EXPECT_EQ(server.refusal.get_future().get().code(), ErrorCode::kUnimplemented);
  }
}

TEST(Handshake, SaysThatThePeerIsOfTheFirstVersion) {
  const std::string reason = "wire version 2 is not spoken here, only 1";
  std::string answer("STARLING\x01\0\x05\0", 12);
  const auto size = static_cast<std::uint32_t>(reason.size());
  answer.append(reinterpret_cast<const char*>(&size), sizeof size);
  OddServer odd(answer + reason, true);
  EventLoop loop;
  auto channel = connect(loop, odd.endpoint, credentials_of(Role::kDriver));
  EXPECT_EQ(channel.status().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(channel.status().message().find("speaks wire version 1, this release 2"),
            std::string::npos)
      << channel.status().message();
}

TEST(Handshake, SurvivesRandomBytes) {
  ListenerOptions options;
  options.handshake_timeout = milliseconds(300);
  Server server(credentials_of(Role::kNode), options);
  std::mt19937 rng(5);
  for (int round = 0; round < 60; ++round) {
    int fd = server.raw_connect();
    std::string bytes;
    if (round % 3 == 1) {  // a good preamble, garbage behind it
      auto raw = Preamble{}.encode();
      bytes.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
    }
    std::size_t size = rng() % 300;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(rng());
    (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::close(fd);
  }
  EventLoop loop;
  auto channel = connect(loop, server.listener->endpoint(), credentials_of(Role::kDriver));
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  // The answer comes after the server has counted this peer.
  ASSERT_TRUE(
      (*channel)
          ->request_blocking(text_message(FrameKind::kCall, "x"), deadline_after(seconds(10)))
          .ok());
  EXPECT_EQ(server.peers.size(), 1u);
}

TEST(Handshake, BoundsConnectionsThatStall) {
  ListenerOptions options;
  options.handshakes_max = 4;
  options.handshake_timeout = milliseconds(200);
  Server server(credentials_of(Role::kNode), options);
  std::vector<int> stalled;
  for (int i = 0; i < 12; ++i) stalled.push_back(server.raw_connect());
  // Those beyond the limit are closed at once, the others at their deadline.
  EXPECT_TRUE(support::eventually([&] { return server.refused == 12; })) << server.refused;
  EventLoop loop;
  EXPECT_TRUE(connect(loop, server.listener->endpoint(), credentials_of(Role::kDriver)).ok());
  for (int fd : stalled) ::close(fd);
}

TEST(Handshake, GetsThroughWhileStrangersHoldAllPlaces) {
  ListenerOptions options;
  options.handshakes_max = 4;
  options.handshake_timeout = std::chrono::minutes(10);
  Server server(credentials_of(Role::kNode), options);
  std::vector<int> stalled;
  for (int i = 0; i < 40; ++i) stalled.push_back(server.raw_connect());
  EventLoop loop;
  for (int i = 0; i < 10; ++i) {
    auto channel = connect(loop, server.listener->endpoint(), credentials_of(Role::kDriver),
                           {.deadline = deadline_after(seconds(20))});
    ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  }
  EXPECT_TRUE(support::eventually([&] { return server.refused >= 37; }))
      << "closed to make room, long before their time was up: " << server.refused;
  EXPECT_EQ(server.refusal.get_future().get().code(), ErrorCode::kResourceExhausted);
  for (int fd : stalled) ::close(fd);
}

TEST(RefusalLog, WritesAFewAndCountsTheRest) {
  RefusalLog log("a caller at ", {.lines_max = 3, .span = milliseconds(500)});
  for (int i = 0; i < 1000; ++i) log.note("10.0.0.9:1", unavailable("no"));
  EXPECT_GE(log.unwritten(), 900u);
  EXPECT_TRUE(support::eventually([&] {
    log.note("10.0.0.9:1", unavailable("no"));
    return log.unwritten() == 0;
  }));
}

TEST(Channel, RefusesMoreDescriptorsThanMayWait) {
  ChannelOptions options;
  options.descriptors_queued_max = 8;
  Pair pair(/*unix_socket=*/true, options);
  pair.server->pause_receiving();
  Status status;
  int sent = 0;
  for (; sent < 5000 && status.ok(); ++sent) {
    Message message = text_message(FrameKind::kAttach, "a stranger's", 64 << 10);
    message.fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    status = pair.client->send(std::move(message));
  }
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << sent;
  EXPECT_NE(status.message().find("wait to be handed over"), std::string::npos)
      << status.to_string();
  EXPECT_TRUE(pair.client->send(text_message(FrameKind::kControlEvent, "others")).ok());
  pair.server->resume_receiving();
}

TEST(Listener, SaysThatTheAddressIsInUse) {
  Server tcp;
  Server unix_socket(credentials_of(Role::kNode), {}, true);
  for (const Server* server : {&tcp, &unix_socket}) {
    EventLoop loop;
    ListenerCallbacks callbacks;
    callbacks.on_channel = [](std::shared_ptr<Channel>) {};
    auto second = Listener::listen(loop, server->listener->endpoint(), credentials_of(Role::kNode),
                                   std::move(callbacks));
    EXPECT_EQ(second.status().code(), ErrorCode::kUnavailable);
    EXPECT_NE(second.status().message().find("address in use"), std::string::npos)
        << second.status().message();
  }
}

TEST(Listener, ReplacesAStaleSocketFileAndRemovesItsOwn) {
  support::TemporaryFolder dir;
  std::string path = dir.file("s");
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  EventLoop loop;
  ListenerCallbacks callbacks;
  callbacks.on_channel = [](std::shared_ptr<Channel>) {};
  {
    auto listener = Listener::listen(loop, *Endpoint::unix_socket(path),
                                     credentials_of(Role::kNode), std::move(callbacks));
    ASSERT_TRUE(listener.ok()) << listener.status().to_string();
    EXPECT_TRUE(connect(loop, (*listener)->endpoint(), credentials_of(Role::kDriver)).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A node that hands connections to a worker: caller and worker then talk with no hop between them.
TEST(Listener, HandsAConnectionToAWorker) {
  support::TemporaryFolder dir;
  EventLoop node_loop, worker_loop, caller_loop;
  Credentials worker = credentials_of(Role::kWorker);
  worker.worker = WorkerId::random();
  ListenerCallbacks worker_callbacks;
  worker_callbacks.on_channel = [](std::shared_ptr<Channel> channel) {
    channel->set_handler([](const std::shared_ptr<Channel>& from, Message message) {
      (void)from->send(reply_to(message, text_message(FrameKind::kCall, "I am the worker").meta));
    });
  };
  auto worker_listener = Listener::listen(worker_loop, *Endpoint::unix_socket(dir.file("w")),
                                          worker, std::move(worker_callbacks));
  ASSERT_TRUE(worker_listener.ok());

  std::shared_ptr<Channel> to_worker;  // what the node holds
  std::promise<void> registered;
  ListenerCallbacks node_callbacks;
  node_callbacks.on_channel = [&](std::shared_ptr<Channel> channel) {
    to_worker = std::move(channel);
    registered.set_value();
  };
  node_callbacks.on_inbound = [&](const Inbound& inbound, FileDescriptor& socket) -> Status {
    const WorkerId target = inbound.preamble.target;
    if (target != worker.worker)
      return not_found("worker " + target.short_hex() + " is not on this node");
    return to_worker->send(encode_attach(inbound, std::move(socket)));
  };
  auto node = Listener::listen(node_loop, *Endpoint::unix_socket(dir.file("n")),
                               credentials_of(Role::kNode), std::move(node_callbacks));
  ASSERT_TRUE(node.ok());

  auto from_worker = connect(worker_loop, (*node)->endpoint(), worker);
  ASSERT_TRUE(from_worker.ok());
  (*from_worker)->set_handler([&](const std::shared_ptr<Channel>&, Message message) {
    FileDescriptor socket;
    auto inbound = decode_attach(message, &socket);
    ASSERT_TRUE(inbound.ok()) << inbound.status().to_string();
    (*worker_listener)->adopt(std::move(socket), *inbound);
  });
  registered.get_future().get();

  auto call = connect(caller_loop, (*node)->endpoint().for_worker(worker.worker),
                      credentials_of(Role::kDriver));
  ASSERT_TRUE(call.ok()) << call.status().to_string();
  EXPECT_EQ((*call)->peer().worker, worker.worker);
  auto reply =
      (*call)->request_blocking(text_message(FrameKind::kCall, "x"), deadline_after(seconds(10)));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->meta.text().substr(0, 15), "I am the worker");

  auto lost = connect(caller_loop, (*node)->endpoint().for_worker(WorkerId::random()),
                      credentials_of(Role::kDriver));
  EXPECT_EQ(lost.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(lost.status().message().find("is not on this node"), std::string::npos)
      << lost.status().message();
}

TEST(Preamble, RoundTripsAndRefusesOtherBytes) {
  Preamble preamble{.flags = 1,
                    .target = WorkerId::random(),
                    .dialled = AddressDigest::random(),
                    .reached = AddressDigest::random(),
                    .key = KeyId::random()};
  auto raw = preamble.encode();
  auto back = Preamble::decode(raw);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->target, preamble.target);
  EXPECT_EQ(back->flags, 1);
  EXPECT_EQ(back->dialled, preamble.dialled);
  EXPECT_EQ(back->reached, preamble.reached);
  EXPECT_EQ(back->key, preamble.key);
  EXPECT_FALSE(Preamble::decode(std::span(raw).first(Preamble::kBytes - 1)).ok());
  EXPECT_FALSE(Preamble::decode(std::span(raw).first(Preamble::kCommonBytes - 1)).ok());
  raw[0] = std::byte{'G'};
  EXPECT_EQ(Preamble::decode(raw).status().code(), ErrorCode::kInvalidArgument);
}

TEST(Attach, RoundTrips) {
  for (const bool plain : {false, true}) {
    const Inbound inbound{{.target = WorkerId::random()}, plain};
    Message message = encode_attach(inbound, FileDescriptor(::open("/dev/null", O_RDONLY)));
    FileDescriptor socket;
    auto back = decode_attach(message, &socket);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_TRUE(socket);
    EXPECT_EQ(back->preamble.target, inbound.preamble.target);
    EXPECT_EQ(back->plain, plain);
  }
}

TEST(Hello, RoundTrips) {
  Hello hello;
  hello.version = "1.2.3";
  hello.role = Role::kWorker;
  hello.worker = WorkerId::random();
  hello.incarnation = 9;
  hello.refusal = not_found("x");
  auto back = Hello::decode(hello.encode());
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->version, "1.2.3");
  EXPECT_EQ(back->role, Role::kWorker);
  EXPECT_EQ(back->worker, hello.worker);
  EXPECT_TRUE(back->node.is_none());
  EXPECT_EQ(back->refusal, hello.refusal);
}

TEST(Hello, RefusesMalformedBytes) {
  Buffer good = Hello::of(credentials_of(Role::kNode)).encode();
  EXPECT_FALSE(Hello::decode(Buffer()).ok());
  EXPECT_FALSE(Hello::decode(good.slice(0, 8)).ok());
  std::string bad(good.text());
  for (char& c : bad) c = '\xff';
  Status status = Hello::decode(Buffer::copy_of(bad)).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(status.message().find("malformed hello"), std::string::npos);
}

}  // namespace
}  // namespace runtime
