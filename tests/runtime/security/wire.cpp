#include "wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "tests/support/listening_socket.h"

namespace runtime::test {
namespace {

constexpr int kPollMs = 20;
constexpr std::size_t kBlockBytes = 64 << 10;

}  // namespace

FileDescriptor dial(const std::string& host, int port) {
  return support::connect_to(host, static_cast<std::uint16_t>(port));
}

bool say(const FileDescriptor& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string hear(const FileDescriptor& socket, std::size_t bytes,
                 std::chrono::milliseconds patience) {
  std::string heard;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (heard.size() < bytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    pollfd waiting{socket.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) break;
    std::string block(bytes - heard.size(), '\0');
    const ssize_t got = ::recv(socket.get(), block.data(), block.size(), 0);
    if (got <= 0) break;
    heard.append(block, 0, static_cast<std::size_t>(got));
  }
  return heard;
}

bool is_closed(const FileDescriptor& socket, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    pollfd waiting{socket.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) return false;
    char block[1024];
    if (::recv(socket.get(), block, sizeof block, 0) <= 0) return true;
  }
}

std::string preamble_bytes(const Preamble& preamble) {
  const auto raw = preamble.encode();
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

HandCaller::HandCaller(const std::string& token, const Preamble& preamble)
    : noise_(NoiseHandshake::Side::kInitiator, key_of_token(token), preamble.encode()),
      first_flight_(preamble_bytes(preamble)) {
  std::vector<std::byte> message;
  noise_.write({}, message);
  first_flight_.append(reinterpret_cast<const char*>(message.data()), message.size());
}

bool HandCaller::take_answer(const std::string& answer) {
  if (answer.size() != kAnswerBytes) return false;
  std::byte traffic{};
  return noise_.read(std::as_bytes(std::span(answer)).subspan(16), std::span(&traffic, 1));
}

std::string HandCaller::hello(std::string_view meta) const {
  std::vector<std::byte> sealed;
  MessageCipher(noise_.split().from_initiator).encrypt({}, std::as_bytes(std::span(meta)), sealed);
  const auto size = static_cast<std::uint32_t>(sealed.size());
  std::string text(reinterpret_cast<const char*>(&size), sizeof size);
  return text.append(reinterpret_cast<const char*>(sealed.data()), sealed.size());
}

Result<Hello> HandCaller::take_hello(const std::string& sealed) const {
  std::uint32_t size = 0;
  if (sealed.size() < sizeof size) return invalid_argument("no Hello");
  std::memcpy(&size, sealed.data(), sizeof size);
  if (sealed.size() != sizeof size + size || size <= MessageCipher::kTagBytes)
    return invalid_argument("a Hello of another size than it says");
  std::byte* writable = nullptr;
  Buffer meta = Buffer::allocate(size - MessageCipher::kTagBytes, &writable);
  if (!MessageCipher(noise_.split().from_responder)
           .decrypt({}, std::as_bytes(std::span(sealed)).subspan(sizeof size),
                    {writable, meta.size()}))
    return invalid_argument("a Hello that does not open");
  return Hello::decode(meta);
}

Recorder::Recorder(const std::string& host, int port, const std::string& target_host,
                   int target_port)
    : target_host_(target_host), target_port_(target_port) {
  listener_ = support::listen_at(host, static_cast<std::uint16_t>(port));
  if (!listener_) return;
  thread_ = std::thread([this] { serve(); });
}

Recorder::~Recorder() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

std::vector<Recorder::Connection> Recorder::recorded() const {
  std::lock_guard lock(mutex_);
  std::vector<Connection> copies;
  for (const auto& connection : connections_) copies.push_back(*connection);
  return copies;
}

void Recorder::serve() {
  std::vector<std::thread> threads;
  while (!stopping_) {
    pollfd waiting{listener_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, kPollMs) <= 0) continue;
    FileDescriptor caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!caller) continue;
    auto connection = std::make_shared<Connection>();
    {
      std::lock_guard lock(mutex_);
      connections_.push_back(connection);
    }
    threads.emplace_back([this, connection, caller = std::move(caller)]() mutable {
      forward(std::move(caller), std::move(connection));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Recorder::forward(FileDescriptor caller, std::shared_ptr<Connection> into) {
  FileDescriptor callee = dial(target_host_, target_port_);
  if (!callee) return;
  std::string block(kBlockBytes, '\0');
  while (!stopping_) {
    pollfd fds[2] = {{caller.get(), POLLIN, 0}, {callee.get(), POLLIN, 0}};
    if (::poll(fds, 2, kPollMs) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].revents == 0) continue;
      const ssize_t got = ::recv(fds[i].fd, block.data(), block.size(), 0);
      if (got <= 0) return;
      const std::string_view bytes(block.data(), static_cast<std::size_t>(got));
      {
        std::lock_guard lock(mutex_);
        (i == 0 ? into->from_caller : into->from_callee).append(bytes);
      }
      if (!say(i == 0 ? callee : caller, bytes)) return;
    }
  }
}

}  // namespace runtime::test
