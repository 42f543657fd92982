// Plain sockets for strangers: what they say to a port byte by byte, what is said to them, and what
// passes between others.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/transport/file_descriptor.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/noise.h"

namespace runtime::test {

/// A connection to an IPv4 address; none if it is refused.
FileDescriptor dial(const std::string& host, int port);
bool say(const FileDescriptor& socket, std::string_view bytes);
/// Up to `bytes`, or what came until the peer closed or the time was up.
std::string hear(const FileDescriptor& socket, std::size_t bytes,
                 std::chrono::milliseconds patience = std::chrono::seconds(20));
/// Waits until the peer closes; what it says first is dropped. False: it has not in that time.
bool is_closed(const FileDescriptor& socket,
               std::chrono::milliseconds patience = std::chrono::seconds(20));

std::string preamble_bytes(const Preamble& preamble);
/// A caller that speaks docs/wire.md by hand.
class HandCaller {
 public:
  /// Its preamble says that it dialled this address.
  HandCaller(const std::string& token, const Preamble& preamble);

  /// What it sends before it hears anything.
  std::string first_flight() const { return first_flight_; }
  /// How many bytes answer that, of a callee that goes on.
  static constexpr std::size_t kAnswerBytes = 16 + NoiseHandshake::kOverheadBytes + 1;
  /// Whether the answer is of a callee with the same token.
  bool take_answer(const std::string& answer);
  /// A sealed Hello of any bytes, after take_answer().
  std::string hello(std::string_view meta) const;
  /// The callee's sealed Hello. Errors: kInvalidArgument when these bytes are none.
  Result<Hello> take_hello(const std::string& sealed) const;

 private:
  NoiseHandshake noise_;
  std::string first_flight_;
};

/// Passes connections on and keeps what passes, each connection's two directions by themselves.
class Recorder {
 public:
  struct Connection {
    std::string from_caller, from_callee;
  };
  Recorder(const std::string& host, int port, const std::string& target_host, int target_port);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  bool listens() const { return static_cast<bool>(listener_); }
  std::vector<Connection> recorded() const;

 private:
  void serve();
  void forward(FileDescriptor caller, std::shared_ptr<Connection> into);

  const std::string target_host_;
  const int target_port_;
  FileDescriptor listener_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::thread thread_;
};

}  // namespace runtime::test
