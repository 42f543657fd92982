// Connections that outlive their sockets.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/pauses.h"

namespace runtime {
namespace {

using support::eventually;

/// Passes connections to a port on, until it is told to cut those that there are, or to let none
/// through.
class Relay {
 public:
  Relay() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void start(std::uint16_t target) {
    target_ = target;
    thread_ = std::thread([this] { serve(); });
  }
  std::uint16_t port() const { return port_; }
  /// Ends all connections, with what is under way.
  void cut() {
    const int before = rounds_;
    cut_ = true;
    EXPECT_TRUE(
        eventually([&] { return !cut_ && rounds_ != before; }, seconds(60), milliseconds(1)));
  }
  /// Cuts each connection after this many bytes. 0: none.
  void cut_every(std::size_t bytes) { budget_ = bytes; }
  void block(bool blocked) { blocked_ = blocked; }
  int cuts() const { return cuts_; }

 private:
  struct Line {
    FileDescriptor ends[2];
    std::size_t budget;
  };

  void serve() {
    std::vector<Line> lines;
    std::vector<char> buffer(16 << 10);
    while (!stop_) {
      if (cut_) {
        cuts_ += static_cast<int>(lines.size());
        lines.clear();
        cut_ = false;
      }
      std::vector<pollfd> waiting{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      for (Line& line : lines) {
        for (auto& end : line.ends)
          waiting.push_back({.fd = end.get(), .events = POLLIN, .revents = 0});
      }
      (void)::poll(waiting.data(), waiting.size(), 2);
      ++rounds_;
      for (std::size_t i = lines.size(); i-- > 0;) {
        bool alive = true;
        for (std::size_t end = 0; end < 2 && alive; ++end) {
          if (waiting[1 + 2 * i + end].revents == 0) continue;
          const ssize_t count =
              ::recv(lines[i].ends[end].get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
          if (count < 0 && errno == EAGAIN) continue;
          alive =
              count > 0 &&
              pass(lines[i], end,
                   std::span(buffer).first(static_cast<std::size_t>(std::max<ssize_t>(0, count))));
        }
        if (!alive) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (waiting[0].revents == 0) continue;
      FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client || blocked_) continue;
      FileDescriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(target_);
      if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        continue;
      lines.push_back(
          {{std::move(client), std::move(server)},
           budget_ == 0 ? std::size_t(-1) : budget_ + static_cast<std::size_t>(rounds_ % 97)});
    }
  }
  bool pass(Line& line, std::size_t from, std::span<const char> bytes) {
    const std::size_t take = std::min(bytes.size(), line.budget);
    std::size_t sent = 0;
    while (sent < take) {
      const ssize_t count =
          ::send(line.ends[1 - from].get(), bytes.data() + sent, take - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    if (line.budget != std::size_t(-1)) line.budget -= take;
    if (line.budget == 0) ++cuts_;
    return line.budget != 0;
  }

  std::uint16_t target_ = 0;
  FileDescriptor listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false}, cut_{false}, blocked_{false};
  std::atomic<std::size_t> budget_{0};
  std::atomic<int> rounds_{0}, cuts_{0};
  std::thread thread_;
};

/// A server and a client with a relay between them.
class LastingPair {
 public:
  explicit LastingPair(ChannelOptions channel_options = {}) : options(channel_options) {
    ListenerOptions listener_options;
    listener_options.channel = options;
    listener_options.also_reached_at = {Endpoint::tcp("127.0.0.1", relay->port())};
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](std::shared_ptr<Channel> channel) {
      std::lock_guard lock(mutex);
      ++accepted;
      channel->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
        on_message(from, std::move(message));
      });
      channel->set_on_close([this](const Status&) { ++server_closes; });
      server = std::move(channel);
    };
    auto bound =
        Listener::listen(server_loop, Endpoint::tcp("127.0.0.1", 0), credentials_of(Role::kNode),
                         std::move(callbacks), listener_options);
    EXPECT_TRUE(bound.ok()) << bound.status().to_string();
    listener = *std::move(bound);
    relay->start(listener->endpoint().port);
    connect_client();
  }
  ~LastingPair() {
    if (client) client->close(cancelled("test over"));
    if (auto channel = server_channel()) channel->close(cancelled("test over"));
    listener->stop();
  }
  void connect_client() {
    ConnectOptions connect_options;
    connect_options.channel = options;
    connect_options.lasting = true;
    auto connected = connect(client_loop, Endpoint::tcp("127.0.0.1", relay->port()),
                             credentials_of(Role::kDriver), connect_options);
    ASSERT_TRUE(connected.ok()) << connected.status().to_string();
    client = *std::move(connected);
    client->set_on_close([this](const Status&) { ++client_closes; });
  }
  /// Remembers each request, and echoes it.
  void on_message(const std::shared_ptr<Channel>& from, Message message) {
    {
      std::lock_guard lock(mutex);
      seen.push_back(std::string(message.meta.text()));
    }
    if (message.id != 0)
      (void)from->send(reply_to(message, message.meta, message.payload), Flush::kSoon);
  }
  std::shared_ptr<Channel> server_channel() {
    std::lock_guard lock(mutex);
    return server;
  }
  std::vector<std::string> all_seen() {
    std::lock_guard lock(mutex);
    return seen;
  }

  const ChannelOptions options;
  EventLoop server_loop, client_loop;
  std::mutex mutex;
  std::shared_ptr<Channel> server;
  std::vector<std::string> seen;
  int accepted = 0;
  std::atomic<int> client_closes{0}, server_closes{0};
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Relay> relay = std::make_unique<Relay>();
  std::shared_ptr<Channel> client;
};

std::string number_text(int number) {
  std::string text = std::to_string(number);
  text.resize(8, ' ');
  return text;
}

TEST(Lasting, EveryFrameArrivesOnceAndInOrderWhereverTheSocketIsCut) {
  LastingPair pair;
  pair.relay->cut_every(9'000);
  pair.relay->cut();
  constexpr int kCount = 5'000;
  std::atomic<int> answered{0}, wrong{0};
  for (int i = 0; i < kCount; ++i) {
    const std::string text = number_text(i);
    pair.client->request(text_message(FrameKind::kCall, text, i % 50 == 0 ? 3'000 : 16),
                         deadline_after(seconds(60)), [&, text](Result<Message> reply) {
                           if (!reply.ok() || reply->meta.text() != text) ++wrong;
                           ++answered;
                         });
    if (i % 200 == 0) support::pace(milliseconds(1));
  }
  EXPECT_TRUE(eventually([&] { return answered == kCount; }, seconds(60))) << answered;
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(pair.relay->cuts(), 20);
  const auto seen = pair.all_seen();
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], number_text(i));
  EXPECT_EQ(pair.accepted, 1) << "the server sees one connection";
  EXPECT_EQ(pair.client_closes + pair.server_closes, 0);
}

TEST(Lasting, LargePayloadsSurviveACutInTheirMiddle) {
  LastingPair pair;
  std::vector<std::byte> target(20 << 20);
  auto owner = std::make_shared<int>(0);
  std::promise<Result<Message>> got;
  std::thread cutter([&] {
    for (int i = 0; i < 5; ++i) {
      support::pace(milliseconds(3));
      pair.relay->cut();
    }
  });
  Message large = text_message(FrameKind::kCall, "large", target.size());
  const Buffer sent = large.payload.first();
  pair.client->request_into(std::move(large), deadline_after(seconds(60)), target, owner,
                            [&](Result<Message> reply) { got.set_value(std::move(reply)); });
  auto reply = got.get_future().get();
  cutter.join();
  ASSERT_TRUE(reply.ok()) << reply.status().to_string();
  EXPECT_EQ(reply->payload.first().data(), target.data())
      << "received into its place, by whichever socket";
  EXPECT_TRUE(std::equal(target.begin(), target.end(), sent.bytes().begin()));
  EXPECT_EQ(pair.all_seen().size(), 1u);
}

TEST(Lasting, WhatIsKeptIsBoundedByWhatThePeerConfirms) {
  LastingPair pair;
  for (int i = 0; i < 2'000; ++i) {
    auto reply = pair.client->request_blocking(
        text_message(FrameKind::kCall, number_text(i), 10'000), deadline_after(seconds(20)));
    ASSERT_TRUE(reply.ok()) << reply.status().to_string();
  }
  // What is not counted here is at most what a receiver confirms at once.
  for (const auto& channel : {pair.client, pair.server_channel()}) {
    EXPECT_TRUE(eventually([&] { return channel->queued_bytes() == 0; }));
  }
}

TEST(Lasting, FramesSentWhileThereIsNoSocketWaitForTheNext) {
  LastingPair pair;
  ASSERT_TRUE(pair.client
                  ->request_blocking(text_message(FrameKind::kCall, number_text(0)),
                                     deadline_after(seconds(20)))
                  .ok());
  std::atomic<int> interruptions{0};
  pair.client->set_on_interrupt([&] { ++interruptions; });
  pair.relay->block(true);
  pair.relay->cut();
  ASSERT_TRUE(eventually([&] { return pair.client->is_interrupted(); }));
  EXPECT_TRUE(eventually([&] { return interruptions == 1; }));
  EXPECT_FALSE(pair.client->closed());
  std::promise<Status> late, answered;
  pair.client->request(text_message(FrameKind::kCall, number_text(1)),
                       deadline_after(milliseconds(50)),
                       [&](Result<Message> reply) { late.set_value(reply.status()); });
  pair.client->request(text_message(FrameKind::kCall, number_text(2)), deadline_after(seconds(20)),
                       [&](Result<Message> reply) { answered.set_value(reply.status()); });
  EXPECT_EQ(late.get_future().get().code(), ErrorCode::kDeadlineExceeded)
      << "deadlines hold meanwhile";
  pair.relay->block(false);
  EXPECT_TRUE(answered.get_future().get().ok());
  EXPECT_EQ(pair.all_seen().size(), 3u);
}

TEST(Lasting, AnInterruptionThatLastsTooLongEndsBothSides) {
  ChannelOptions options;
  options.interruption_max = milliseconds(200);
  LastingPair pair(options);
  ASSERT_TRUE(pair.client
                  ->request_blocking(text_message(FrameKind::kCall, number_text(0)),
                                     deadline_after(seconds(20)))
                  .ok());
  pair.relay->block(true);
  pair.relay->cut();
  auto reply = pair.client->request_blocking(text_message(FrameKind::kCall, number_text(1)),
                                             deadline_after(seconds(20)));
  EXPECT_EQ(reply.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(reply.status().message().find("200 ms"), std::string::npos) << reply.status().message();
  EXPECT_TRUE(eventually([&] { return pair.client_closes + pair.server_closes == 2; }));
  EXPECT_EQ(pair.client_closes, 1);
  EXPECT_EQ(pair.server_closes, 1);
}

TEST(Lasting, ASessionThatTheServerHasForgottenIsNotResumed) {
  LastingPair pair;
  ASSERT_TRUE(pair.client
                  ->request_blocking(text_message(FrameKind::kCall, number_text(0)),
                                     deadline_after(seconds(20)))
                  .ok());
  pair.relay->block(true);
  pair.relay->cut();
  ASSERT_TRUE(eventually([&] { return pair.server_channel()->is_interrupted(); }));
  pair.server_channel()->close(cancelled("forgotten"));
  pair.relay->block(false);
  auto reply = pair.client->request_blocking(text_message(FrameKind::kCall, number_text(1)),
                                             deadline_after(seconds(20)));
  EXPECT_EQ(reply.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(reply.status().message().find("not known"), std::string::npos)
      << reply.status().message();
  EXPECT_EQ(pair.all_seen().size(), 1u) << "nothing runs twice";
}

TEST(Lasting, AnEndThatIsMeantIsNoInterruption) {
  LastingPair pair;
  ASSERT_TRUE(pair.client
                  ->request_blocking(text_message(FrameKind::kCall, number_text(0)),
                                     deadline_after(seconds(20)))
                  .ok());
  pair.client->close(cancelled("enough"));
  EXPECT_TRUE(eventually([&] { return pair.server_closes == 1; }));
  pair.connect_client();
  ASSERT_TRUE(pair.client
                  ->request_blocking(text_message(FrameKind::kCall, number_text(1)),
                                     deadline_after(seconds(20)))
                  .ok());
  pair.server_channel()->close(cancelled("enough"));
  EXPECT_TRUE(eventually([&] { return pair.client_closes == 2; }));
}

}  // namespace
}  // namespace runtime
