// Fixture of the transport tests: two loops as if two processes, a connected pair of channels.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <spdlog/spdlog.h>
#include <cstring>
#include <future>
#include <memory>
#include <string>

#include "runtime/transport/listener.h"
#include "tests/support/temporary_folder.h"

namespace runtime {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The thread sanitizer does not see how spdlog's library guards what it makes at the first use, so
/// that is before there are threads.
inline const auto kLogger = spdlog::default_logger();

inline Credentials credentials_of(Role role, std::string token = "secret") {
  Credentials credentials;
  credentials.token = std::move(token);
  credentials.role = role;
  return credentials;
}

inline Message text_message(FrameKind kind, std::string_view text, std::size_t payload_bytes = 0) {
  Message message;
  message.kind = kind;
  std::string padded(text);
  padded.resize((text.size() + 7) / 8 * 8, ' ');
  message.meta = Buffer::copy_of(padded);
  if (payload_bytes > 0) {
    std::vector<std::byte> bytes(payload_bytes);
    for (std::size_t i = 0; i < payload_bytes; ++i) bytes[i] = static_cast<std::byte>(i * 131 >> 3);
    message.payload = Buffer::adopt(std::move(bytes));
  }
  return message;
}

/// A server and a client, each with its own loop, connected through a Unix or a TCP socket.
class Pair {
 public:
  explicit Pair(bool unix_socket = true, ChannelOptions client_options = {},
                ChannelOptions server_options = {}) {
    ListenerOptions options;
    options.channel = server_options;
    auto arrived = std::make_shared<std::promise<std::shared_ptr<Channel>>>();
    ListenerCallbacks callbacks;
    callbacks.on_channel = [this, arrived](std::shared_ptr<Channel> channel) {
      if (on_server_channel) on_server_channel(channel);
      arrived->set_value(channel);
    };
    Endpoint endpoint =
        unix_socket ? *Endpoint::unix_socket(dir.file("s")) : Endpoint::tcp("127.0.0.1", 0);
    auto bound = Listener::listen(server_loop, endpoint, credentials_of(Role::kNode),
                                  std::move(callbacks), options);
    EXPECT_TRUE(bound.ok()) << bound.status().to_string();
    listener = std::move(*bound);
    ConnectOptions connect_options;
    connect_options.channel = client_options;
    auto connected =
        connect(client_loop, listener->endpoint(), credentials_of(Role::kDriver), connect_options);
    EXPECT_TRUE(connected.ok()) << connected.status().to_string();
    client = *connected;
    server = arrived->get_future().get();
  }
  ~Pair() {
    client->close(cancelled("test over"));
    server->close(cancelled("test over"));
  }

  /// The server answers every request with its own meta and payload.
  void echo() {
    server->set_handler([](const std::shared_ptr<Channel>& channel, Message message) {
      if (message.id == 0) return;
      Message reply = reply_to(message, message.meta, message.payload);
      (void)channel->send(std::move(reply));
    });
  }

  support::TemporaryFolder dir;
  EventLoop server_loop;
  EventLoop client_loop;
  std::function<void(std::shared_ptr<Channel>)> on_server_channel;
  std::unique_ptr<Listener> listener;
  std::shared_ptr<Channel> client;
  std::shared_ptr<Channel> server;
};

}  // namespace runtime
