// A metadata endpoint as a cloud has it, whose answers are the test's.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/transport/file_descriptor.h"
#include "tests/support/eventually.h"
#include "tests/support/listening_socket.h"
#include "tests/support/pauses.h"

namespace support {

/// Answers every request on its own connection, as it is told to.
class MetadataServer {
 public:
  using Answer = std::function<std::string(const std::string& request)>;

  explicit MetadataServer(Answer answer)
      : answer_(std::move(answer)),
        listener_(listen_at("127.0.0.1", 0)),
        port_(port_of(listener_)) {
    EXPECT_TRUE(listener_);
    thread_ = std::thread([this] { serve(); });
  }
  ~MetadataServer() {
    stop_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    for (std::thread& connection : connections_) connection.join();
  }
  std::string url(const std::string& kind) const {
    return kind + "+http://127.0.0.1:" + std::to_string(port_);
  }
  std::string port() const { return std::to_string(port_); }
  int requests() const { return requests_; }
  void set(Answer answer) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  /// Bytes are sent one by one, this far apart; zero: at once. Below zero: never, and the
  /// connection stays open.
  std::atomic<int> pause_ms{0};

 private:
  void serve() {
    while (!stop_) {
      const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      connections_.emplace_back([this, socket] {
        talk(socket);
        ::close(socket);
      });
    }
  }
  void talk(int socket) {
    std::string request;
    char block[2048];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(socket, block, sizeof block, 0);
      if (got <= 0) return;
      request.append(block, static_cast<std::size_t>(got));
    }
    ++requests_;
    std::string answer;
    {
      std::lock_guard lock(mutex_);
      answer = answer_(request);
    }
    (void)eventually([&] { return pause_ms >= 0 || stop_; }, std::chrono::minutes(10));
    if (pause_ms == 0) {
      (void)::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
      return;
    }
    for (const char c : answer) {
      if (stop_ || ::send(socket, &c, 1, MSG_NOSIGNAL) != 1) return;
      pace(std::chrono::milliseconds(pause_ms));
    }
  }

  std::mutex mutex_;
  Answer answer_;
  const runtime::FileDescriptor listener_;
  const std::uint16_t port_;
  std::atomic<bool> stop_{false};
  std::atomic<int> requests_{0};
  std::thread thread_;
  std::vector<std::thread> connections_;
};

inline std::string http_answer(int status, const std::string& body,
                               const std::string& headers = "") {
  return "HTTP/1.1 " + std::to_string(status) +
         " Whatever\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers + "\r\n" +
         body;
}

/// As AWS's: a token first, then the action, if there is one.
inline MetadataServer::Answer aws_metadata(std::string action) {
  return [action](const std::string& request) {
    if (request.starts_with("PUT /latest/api/token") &&
        request.find("X-aws-ec2-metadata-token-ttl-seconds: ") != std::string::npos)
      return http_answer(200, "TOKEN==");
    if (request.find("X-aws-ec2-metadata-token: TOKEN==") == std::string::npos)
      return http_answer(401, "");
    if (!request.starts_with("GET /latest/meta-data/spot/instance-action"))
      return http_answer(500, "");
    return action.empty() ? http_answer(404, "<html>none</html>") : http_answer(200, action);
  };
}

inline MetadataServer::Answer gcp_metadata(std::string word) {
  return [word](const std::string& request) {
    if (request.find("Metadata-Flavor: Google") == std::string::npos) return http_answer(403, "");
    if (!request.starts_with("GET /computeMetadata/v1/instance/preempted"))
      return http_answer(500, "");
    return http_answer(200, word, "Metadata-Flavor: Google\r\n");
  };
}

}  // namespace support
