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

namespace runtime::test {

/// A connection to an IPv4 address; none if it is refused.
FileDescriptor dial(const std::string& host, int port);
bool say(const FileDescriptor& socket, std::string_view bytes);
/// Up to `bytes`, or what came until the peer closed or the time was up.
std::string hear(const FileDescriptor& socket, std::size_t bytes,
                 std::chrono::milliseconds patience);
/// Whether the peer closes within that time; what it says first is dropped.
bool is_closed_within(const FileDescriptor& socket, std::chrono::milliseconds patience);

std::string preamble_bytes(const Preamble& preamble);
/// What a caller proves, by docs/wire.md.
std::string caller_proof(const std::string& token, const std::string& preamble,
                         const std::string& caller_nonce, const std::string& callee_nonce);
/// A frame with a Hello's kind around any bytes.
std::string hello_frame(std::string meta);

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
