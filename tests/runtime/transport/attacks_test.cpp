// Attacks by a party between two processes that has not the token. It passes connections on to
// others, repeats what it recorded, sends it back, or changes it.
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "fixture.h"
#include "runtime/transport/noise.h"
#include "tests/support/eventually.h"
#include "tests/support/listening_socket.h"

namespace runtime {
namespace {

constexpr int kPollMs = 20;

/// Takes connections at its own port and passes what comes on to a target, as `tamper` leaves
/// it; keeps all of it.
class Interceptor {
 public:
  struct Bytes {
    bool from_caller;
    std::size_t begin;  // of its direction
    std::string& text;
  };
  using Tamper = std::function<void(Bytes)>;

  Interceptor() : listener_(support::listen_at("127.0.0.1", 0)) {}
  ~Interceptor() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void start(std::uint16_t target, Tamper tamper) {
    target_ = target;
    tamper_ = std::move(tamper);
    thread_ = std::thread([this] { serve(); });
  }

  Endpoint endpoint() const { return Endpoint::tcp("127.0.0.1", support::port_of(listener_)); }
  std::string recorded(bool from_caller) const {
    std::lock_guard lock(mutex_);
    return recorded_[from_caller ? 1 : 0];
  }

 private:
  void serve() {
    while (!stopping_) {
      pollfd waiting{listener_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, kPollMs) <= 0) continue;
      const FileDescriptor caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const FileDescriptor callee = support::connect_to("127.0.0.1", target_);
      forward(caller, callee);
    }
  }

  void forward(const FileDescriptor& caller, const FileDescriptor& callee) {
    std::size_t passed[2] = {0, 0};
    while (!stopping_) {
      pollfd ends[2] = {{caller.get(), POLLIN, 0}, {callee.get(), POLLIN, 0}};
      if (::poll(ends, 2, kPollMs) <= 0) continue;
      for (int i = 0; i < 2; ++i) {
        if (ends[i].revents == 0) continue;
        std::string text(64 << 10, '\0');
        const ssize_t got = ::recv(ends[i].fd, text.data(), text.size(), 0);
        if (got <= 0) return;
        text.resize(static_cast<std::size_t>(got));
        if (tamper_) tamper_({i == 0, passed[i], text});
        passed[i] += text.size();
        std::lock_guard lock(mutex_);
        recorded_[i == 0 ? 1 : 0] += text;
        if (::send(ends[1 - i].fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
      }
    }
  }

  std::uint16_t target_ = 0;
  Tamper tamper_;
  FileDescriptor listener_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::array<std::string, 2> recorded_;  // from the callee, from the caller
  std::thread thread_;
};

/// A server that echoes. It goes by the addresses that a test names, besides its own.
class Victim {
 public:
  explicit Victim(ListenerOptions options = {}) {
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](std::shared_ptr<Channel> channel) {
      ++accepted;
      channel->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
        ++frames;
        (void)from->send(reply_to(message, message.meta, message.payload));
      });
    };
    callbacks.on_refused = [this](const std::string&, const Status& why) {
      std::lock_guard lock(mutex_);
      last_refusal_ = why;
      ++refused;
    };
    auto bound = Listener::listen(loop_, Endpoint::tcp("127.0.0.1", 0), credentials_of(Role::kNode),
                                  std::move(callbacks), options);
    EXPECT_TRUE(bound.ok()) << bound.status().to_string();
    listener_ = std::move(*bound);
  }

  std::uint16_t port() const { return listener_->endpoint().port; }
  Status last_refusal() const {
    std::lock_guard lock(mutex_);
    return last_refusal_;
  }

  std::atomic<int> accepted{0}, frames{0}, refused{0};

 private:
  mutable std::mutex mutex_;
  Status last_refusal_;
  EventLoop loop_;
  std::unique_ptr<Listener> listener_;
};

/// An interceptor before a victim that goes by the interceptor's address, as one behind a forwarded
/// port does. Only what the interceptor does to the bytes is in the way.
class AttackTest : public ::testing::Test {
 protected:
  void intercept(Interceptor::Tamper tamper = {}, bool plain = false) {
    ListenerOptions options;
    options.plain = plain;
    options.admits_submitters = true;
    options.also_reached_at = {interceptor_.endpoint()};
    victim_.emplace(options);
    interceptor_.start(victim_->port(), std::move(tamper));
  }
  Result<std::shared_ptr<Channel>> call() {
    return connect(loop_, interceptor_.endpoint(), credentials_of(Role::kDriver));
  }
  static Result<Message> ask(Channel& channel, std::string_view text) {
    return channel.request_blocking(text_message(FrameKind::kCall, text),
                                    deadline_after(seconds(5)));
  }
  void await_refusal() {
    ASSERT_TRUE(support::eventually([&] { return victim_->refused > 0; }));
  }

  EventLoop loop_;
  std::optional<Victim> victim_;
  Interceptor interceptor_;
};

/// Where the parts of a connection's beginning are, in the bytes of each direction.
constexpr std::size_t kCallerHandshake = Preamble::kBytes + NoiseHandshake::kOverheadBytes;
constexpr std::size_t kAnswerBytes = 16;

TEST_F(AttackTest, WhoIsReachedThroughAnAddressOfItsOwnServes) {
  intercept();
  auto channel = call();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  EXPECT_TRUE(ask(**channel, "hello").ok());
}

// An honest caller that connects to an attacker's address is passed on to a node that it did not
// mean.
TEST_F(AttackTest, AConnectionIsNotRelayedToAnotherNode) {
  victim_.emplace();
  interceptor_.start(victim_->port(), {});
  auto channel = call();
  EXPECT_EQ(channel.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(channel.status().message().find("does not go by that address"), std::string::npos)
      << channel.status().message();
  await_refusal();
  EXPECT_NE(victim_->last_refusal().message().find("dialled another address"), std::string::npos)
      << victim_->last_refusal().message();
  EXPECT_EQ(victim_->accepted, 0);
}

// The same, and the attacker says in the preamble that the caller had meant the victim.
TEST_F(AttackTest, ARelayThatChangesWhomTheCallerMeantFails) {
  Preamble meant;
  intercept([&meant](Interceptor::Bytes bytes) {
    if (!bytes.from_caller || bytes.begin > 0) return;
    meant.dialled = AddressDigest::random();
    const auto raw = meant.encode();
    std::memcpy(bytes.text.data() + 32, raw.data() + 32, 16);
  });
  auto channel = call();
  EXPECT_EQ(channel.status().code(), ErrorCode::kInvalidArgument);
  await_refusal();
  EXPECT_EQ(victim_->accepted, 0);
}

TEST_F(AttackTest, ARecordedConnectionIsWorthNothing) {
  intercept();
  auto channel = call();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  ASSERT_TRUE(ask(**channel, "launch").ok());
  const int frames = victim_->frames;
  const std::string recorded = interceptor_.recorded(true);
  const FileDescriptor replay = support::connect_to("127.0.0.1", victim_->port());
  ASSERT_EQ(::send(replay.get(), recorded.data(), recorded.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(recorded.size()));
  await_refusal();
  EXPECT_EQ(victim_->accepted, 1);
  EXPECT_EQ(victim_->frames, frames);
}

// What one side said is said back to it.
TEST_F(AttackTest, AReflectedConnectionIsWorthNothing) {
  std::string first;
  intercept([&first](Interceptor::Bytes bytes) {
    if (bytes.from_caller && bytes.begin == 0) first = bytes.text.substr(Preamble::kBytes);
    if (!bytes.from_caller && bytes.begin == 0)
      bytes.text.replace(kAnswerBytes, first.size(), first);
  });
  auto channel = call();
  EXPECT_EQ(channel.status().code(), ErrorCode::kInvalidArgument) << channel.status().to_string();
  EXPECT_EQ(victim_->accepted, 0);
}

TEST_F(AttackTest, RecordsOfOneDirectionAreNothingInTheOther) {
  std::string asked;
  std::atomic<bool> reflects{false};
  intercept([&](Interceptor::Bytes bytes) {
    if (bytes.from_caller) asked = bytes.text;
    if (!bytes.from_caller && reflects) bytes.text = asked;
  });
  auto channel = call();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  reflects = true;
  EXPECT_EQ(ask(**channel, "hello").status().code(), ErrorCode::kUnavailable);
}

// Every byte of the handshake and of the records behind it, one at a time, in both directions.
TEST_F(AttackTest, ChangedBytesEndAConnection) {
  std::atomic<bool> of_caller{true};
  std::atomic<std::size_t> target{0};
  std::atomic<bool> hit{false};
  intercept([&](Interceptor::Bytes bytes) {
    if (bytes.from_caller != of_caller || target < bytes.begin ||
        target >= bytes.begin + bytes.text.size())
      return;
    bytes.text[target - bytes.begin] ^= 0x20;
    hit = true;
  });
  for (const bool caller : {true, false}) {
    int places = 0;
    of_caller = caller;
    for (std::size_t at = 0;; at += at < kCallerHandshake ? 1 : 7) {
      hit = false;
      target = at;
      ConnectOptions soon;
      soon.deadline = deadline_after(milliseconds(300));
      auto channel = connect(loop_, interceptor_.endpoint(), credentials_of(Role::kDriver), soon);
      Status status = channel.status();
      if (channel.ok()) {
        auto reply = (*channel)->request_blocking(
            text_message(FrameKind::kCall, "0123456701234567"), deadline_after(milliseconds(300)));
        status = reply.status();
        if (reply.ok()) {
          EXPECT_EQ(reply->meta.text(), "0123456701234567");
        }
        (*channel)->close(cancelled("next"));
      }
      if (!hit) break;  // behind the end
      ++places;
      EXPECT_FALSE(status.ok()) << (caller ? "caller's byte " : "callee's byte ") << at;
    }
    EXPECT_GT(places, 100);
  }
}

// A changed record is a broken link: a lasting connection goes on, and loses nothing.
TEST_F(AttackTest, ALastingConnectionOutlivesChangedBytes) {
  std::atomic<int> changes{0};
  std::atomic<bool> changing{false};
  intercept([&](Interceptor::Bytes bytes) {
    if (!bytes.from_caller || !changing.exchange(false)) return;
    // In turn: the size of a record, its text, its tag.
    const int turn = changes++ % 3;
    const std::size_t at = turn == 0   ? 2
                           : turn == 1 ? bytes.text.size() / 2
                                       : bytes.text.size() - 1;
    bytes.text[at] ^= 0x40;
  });
  ConnectOptions lasting;
  lasting.lasting = true;
  auto channel = connect(loop_, interceptor_.endpoint(), credentials_of(Role::kDriver), lasting);
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  for (int i = 0; i < 6; ++i) {
    changing = true;
    auto reply = ask(**channel, "number " + std::to_string(i));
    ASSERT_TRUE(reply.ok()) << i << ": " << reply.status().to_string();
  }
  EXPECT_EQ(changes, 6);
  EXPECT_EQ(victim_->frames, 6) << "each once";
  EXPECT_EQ(victim_->accepted, 1);
}

// A submitter's user follows from its socket, which it cannot replace.
TEST_F(AttackTest, ASubmittersConnectionEndsWithItsSocket) {
  std::atomic<bool> changing{false};
  intercept([&](Interceptor::Bytes bytes) {
    if (bytes.from_caller && changing) bytes.text.back() ^= 0x40;
  });
  ConnectOptions lasting;
  lasting.lasting = true;
  auto channel = connect(loop_, interceptor_.endpoint(),
                         credentials_of(Role::kTool, submitter_token("secret")), lasting);
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  ASSERT_TRUE(ask(**channel, "status").ok());
  changing = true;
  EXPECT_EQ(ask(**channel, "submit").status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(victim_->frames, 1);
  EXPECT_TRUE((*channel)->closed());
}

TEST_F(AttackTest, RecordedTrafficHasNoReadableNames) {
  intercept();
  auto channel = call();
  ASSERT_TRUE(channel.ok());
  const std::string name = "ParameterServer";
  ASSERT_TRUE(ask(**channel, name).ok());
  for (const bool from_caller : {true, false}) {
    EXPECT_EQ(interceptor_.recorded(from_caller).find(name), std::string::npos);
    EXPECT_EQ(interceptor_.recorded(from_caller).find("secret"), std::string::npos);
  }
}

TEST_F(AttackTest, APlainNodeIsServedInPlain) {
  intercept({}, /*plain=*/true);
  auto channel = call();
  ASSERT_TRUE(channel.ok()) << channel.status().to_string();
  const std::string name = "ParameterServer";
  ASSERT_TRUE(ask(**channel, name).ok());
  EXPECT_NE(interceptor_.recorded(true).find(name), std::string::npos);
  EXPECT_EQ(interceptor_.recorded(true).find("secret"), std::string::npos);  // the token
}

// Whether a connection is plain is the callee's choice alone, and no party on the way can make it.
TEST_F(AttackTest, AConnectionIsNotMadePlainOnItsWay) {
  intercept([](Interceptor::Bytes bytes) {
    if (!bytes.from_caller && bytes.begin == 0)
      bytes.text[kAnswerBytes + NoiseHandshake::kKeyBytes] ^= 1;
  });
  EXPECT_EQ(call().status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(victim_->accepted, 0);
}

// To a release before the encryption, as an attacker would like it.
TEST_F(AttackTest, AConnectionIsNotMadeOfAnOlderVersion) {
  intercept([](Interceptor::Bytes bytes) {
    if (bytes.from_caller && bytes.begin == 0) bytes.text[8] = 1;
  });
  auto channel = call();
  EXPECT_EQ(channel.status().code(), ErrorCode::kUnimplemented) << channel.status().to_string();
  EXPECT_EQ(victim_->accepted, 0);
}

TEST_F(AttackTest, LargePayloadsArriveWhole) {
  intercept();
  auto channel = call();
  ASSERT_TRUE(channel.ok());
  for (const std::size_t bytes : {1u, 65'535u, 65'536u, 65'537u, 1'000'000u, 20'000'000u}) {
    Message message = text_message(FrameKind::kCall, "echo", bytes);
    const Payload sent = message.payload;
    auto reply = (*channel)->request_blocking(std::move(message), deadline_after(seconds(60)));
    ASSERT_TRUE(reply.ok()) << reply.status().to_string();
    EXPECT_TRUE(std::ranges::equal(reply->payload.first().bytes(), sent.first().bytes()));
  }
}

}  // namespace
}  // namespace runtime
