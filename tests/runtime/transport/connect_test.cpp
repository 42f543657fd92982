// connect(): retries, callbacks, fork. Answers of the peer: handshake_test.cpp; changed tokens:
// keyring_test.cpp; broken sockets: lasting_test.cpp.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "fixture.h"
#include "runtime/transport/blocking.h"
#include "tests/support/in_child.h"
#include "tests/support/listening_socket.h"
#include "tests/support/on_loop.h"

namespace runtime {
namespace {

/// Hears what a caller says first, and closes the connection.
class CuttingServer {
 public:
  CuttingServer() : thread_([this] { serve(); }) {}
  ~CuttingServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);  // ends accept()
    thread_.join();
  }
  Endpoint endpoint() const { return Endpoint::tcp("127.0.0.1", support::port_of(listener_)); }
  int connections() const { return connections_; }

 private:
  void serve() {
    for (;;) {
      const FileDescriptor caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!caller) return;
      char bytes[4096];
      (void)!::recv(caller.get(), bytes, sizeof bytes, 0);
      ++connections_;
    }
  }

  const FileDescriptor listener_ = support::listen_at("127.0.0.1", 0);
  std::atomic<int> connections_{0};
  std::thread thread_;
};

class ConnectTest : public ::testing::Test {
 protected:
  ConnectTest() {
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this](std::shared_ptr<Channel> channel) {
      channels_.push_back(std::move(channel));
    };
    callbacks.on_refused = [this](const std::string&, const Status&) { ++refused_; };
    auto bound = Listener::listen(server_loop_, Endpoint::tcp("127.0.0.1", 0),
                                  credentials_of(Role::kNode), std::move(callbacks));
    EXPECT_TRUE(bound.ok()) << bound.status().to_string();
    listener_ = std::move(*bound);
  }
  ~ConnectTest() override {
    run_on(server_loop_, [this] {
      for (const auto& channel : channels_) channel->close(cancelled("test over"));
    });
  }
  static ConnectOptions lasting() {
    ConnectOptions options;
    options.lasting = true;
    return options;
  }

  EventLoop server_loop_, loop_;
  std::vector<std::shared_ptr<Channel>> channels_;  // on the server's loop, as what follows
  int refused_ = 0;
  std::unique_ptr<Listener> listener_;
};

TEST_F(ConnectTest, TheCallbackRunsOnceAndOnTheLoop) {
  CuttingServer cutting;
  for (const Endpoint& endpoint : {listener_->endpoint(), cutting.endpoint()}) {
    int calls = 0;
    bool in_loop = false;
    const auto channel =
        wait_for<std::shared_ptr<Channel>>(loop_, deadline_after(seconds(20)), [&](auto done) {
          connect(loop_, endpoint, credentials_of(Role::kDriver), {},
                  [&, done](Result<std::shared_ptr<Channel>> made) {
                    ++calls;
                    in_loop = loop_.in_loop();
                    done(std::move(made));
                  });
        });
    EXPECT_EQ(channel.ok(), endpoint == listener_->endpoint());
    run_on(loop_, [] {});  // what was to come has come
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(in_loop);
    if (channel.ok()) (*channel)->close(cancelled("that was all"));
  }
}

// A lasting connection survives a cut socket; a cut during its handshake must be no worse.
TEST_F(ConnectTest, ALastingConnectionThatIsCutWhileItIsMadeIsTriedSomeTimes) {
  CuttingServer once, again;
  const auto plain = connect(loop_, once.endpoint(), credentials_of(Role::kDriver));
  EXPECT_EQ(plain.status().code(), ErrorCode::kUnavailable) << plain.status().to_string();
  EXPECT_EQ(once.connections(), 1);
  const auto given_up = connect(loop_, again.endpoint(), credentials_of(Role::kDriver), lasting());
  EXPECT_EQ(given_up.status().code(), ErrorCode::kUnavailable) << given_up.status().to_string();
  EXPECT_GT(again.connections(), 2);
}

TEST_F(ConnectTest, ARefusedCallerIsNotRefusedAgain) {
  const auto refused = connect(loop_, listener_->endpoint(),
                               credentials_of(Role::kDriver, "another secret"), lasting());
  EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument) << refused.status().to_string();
  EXPECT_TRUE(comes_true(server_loop_, [&] { return refused_ > 0; }));
  const auto let_in =
      connect(loop_, listener_->endpoint(), credentials_of(Role::kDriver), lasting());
  ASSERT_TRUE(let_in.ok()) << let_in.status().to_string();
  EXPECT_EQ(on_loop(server_loop_, [&] { return refused_; }), 1);
  (*let_in)->close(cancelled("that was all"));
}

TEST_F(ConnectTest, AChildHasNoUseOfItsParentsLoop) {
  EXPECT_EQ(support::in_child([&] {
              const auto channel =
                  connect(loop_, listener_->endpoint(), credentials_of(Role::kDriver));
              return static_cast<int>(channel.status().code());
            }),
            static_cast<int>(forked_status().code()));
}

}  // namespace
}  // namespace runtime
