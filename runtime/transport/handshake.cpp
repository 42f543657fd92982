#include "runtime/transport/handshake.h"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/core/check.h"
#include "runtime/core/random.h"
#include "runtime/core/version.h"

// g++ 12 inlines the coroutine frame's operator new and then takes its own operator delete for a
// stranger.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace runtime {

namespace {

constexpr char kPreambleMagic[8] = {'S', 'T', 'A', 'R', 'L', 'I', 'N', 'G'};
constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kProofBytes = 32;
constexpr std::size_t kReasonBytesMax = 1024;
constexpr std::uint64_t kHelloBytesMax = 16 << 10;

using Nonce = std::array<std::byte, kNonceBytes>;
using Proof = std::array<std::byte, kProofBytes>;

/// The callee's verdict. With a status that is not ok, `reason_bytes` of text follow in place of
/// what else would.
struct Answer {
  static constexpr std::size_t kBytes = 16;
  std::uint16_t version = kWireVersion;
  std::uint16_t code = 0;
  std::uint32_t reason_bytes = 0;

  std::array<std::byte, kBytes> encode() const {
    std::array<std::byte, kBytes> raw;
    std::memcpy(raw.data(), kPreambleMagic, sizeof kPreambleMagic);
    std::memcpy(raw.data() + 8, &version, sizeof version);
    std::memcpy(raw.data() + 10, &code, sizeof code);
    std::memcpy(raw.data() + 12, &reason_bytes, sizeof reason_bytes);
    return raw;
  }
};

Nonce fresh_nonce() {
  Nonce nonce;
  fill_random(nonce);
  return nonce;
}

Proof prove(const std::string& token, std::string_view label, const Preamble& preamble,
            const Nonce& caller, const Nonce& callee) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(token.data()),
                              token.size());
  auto append = [&state](std::span<const std::byte> bytes) {
    crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()),
                                  bytes.size());
  };
  append(std::as_bytes(std::span(label.data(), label.size())));
  append(preamble.encode());
  append(caller);
  append(callee);
  Proof proof;
  static_assert(sizeof(Proof) == crypto_auth_hmacsha256_BYTES);
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(proof.data()));
  return proof;
}

constexpr std::string_view kCallerLabel = "starling caller";
constexpr std::string_view kCalleeLabel = "starling callee";

bool same(const Proof& a, const Proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status wrong_token(const std::string& address) {
  return invalid_argument(
      address +
      ": wrong token: the peer belongs to another cluster, or to an earlier start of this one");
}

/// Reads exactly the buffer. A peer that goes away says so in `what`.
asio::awaitable<Status> read_exactly(Channel::Socket& socket, asio::mutable_buffer into,
                                     std::string what) {
  auto [ec, bytes] = co_await asio::async_read(socket, into, asio::as_tuple(asio::use_awaitable));
  if (ec == asio::error::operation_aborted) co_return cancelled(what + ": cancelled");
  if (ec) co_return unavailable(what);
  co_return Status();
}

asio::awaitable<Status> write_socket(Channel::Socket& socket, asio::const_buffer from,
                                     std::string what) {
  auto [ec, bytes] = co_await asio::async_write(socket, from, asio::as_tuple(asio::use_awaitable));
  if (ec == asio::error::operation_aborted) co_return cancelled(what + ": cancelled");
  if (ec) co_return unavailable(what);
  co_return Status();
}

/// An answer; a refusal comes back as the failure it names.
asio::awaitable<Status> read_answer(Channel::Socket& socket, std::string address) {
  std::array<std::byte, Answer::kBytes> raw;
  Status status = co_await read_exactly(
      socket, asio::buffer(raw),
      address + ": closed the connection during the handshake; is this a Starling port?");
  if (!status.ok()) co_return status;
  if (std::memcmp(raw.data(), kPreambleMagic, sizeof kPreambleMagic) != 0) {
    co_return invalid_argument(address + ": not a Starling port: another service answers there");
  }
  Answer answer;
  std::memcpy(&answer.version, raw.data() + 8, sizeof answer.version);
  std::memcpy(&answer.code, raw.data() + 10, sizeof answer.code);
  std::memcpy(&answer.reason_bytes, raw.data() + 12, sizeof answer.reason_bytes);
  if (answer.version != kWireVersion) {
    co_return unimplemented(address + ": speaks wire version " + std::to_string(answer.version) +
                            ", this release " + std::to_string(kWireVersion) +
                            ": use the same release on all machines");
  }
  if (answer.code == 0) co_return Status();
  std::string reason(std::min<std::size_t>(answer.reason_bytes, kReasonBytesMax), '\0');
  status =
      co_await read_exactly(socket, asio::buffer(reason), address + ": refused the connection");
  if (!status.ok()) co_return status;
  // The peer has proved nothing yet: show only what cannot confuse a terminal.
  std::replace_if(
      reason.begin(), reason.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  co_return Status(error_code_from_wire(answer.code), address + ": " + reason);
}

std::vector<std::byte> encode_refusal(const Status& why) {
  std::string_view reason(why.message());
  reason = reason.substr(0, kReasonBytesMax);
  Answer answer{.code = static_cast<std::uint16_t>(why.code()),
                .reason_bytes = static_cast<std::uint32_t>(reason.size())};
  auto raw = answer.encode();
  std::vector<std::byte> bytes(raw.begin(), raw.end());
  auto text = std::as_bytes(std::span(reason.data(), reason.size()));
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

/// Sends a refusal and waits for the peer to close, so that the refusal is not lost with unread
/// bytes.
asio::awaitable<void> send_refusal(Channel::Socket& socket, Status why) {
  std::vector<std::byte> bytes = encode_refusal(why);
  Status sent = co_await write_socket(socket, asio::buffer(bytes), "refusal");
  if (!sent.ok()) co_return;
  boost::system::error_code ignored;
  socket.shutdown(Channel::Socket::shutdown_send, ignored);
  std::array<std::byte, 256> rest;
  for (int reads = 0; reads < 64; ++reads) {
    auto [ec, count] =
        co_await socket.async_read_some(asio::buffer(rest), asio::as_tuple(asio::use_awaitable));
    if (ec || count == 0) co_return;
  }
}

void append_hello(std::vector<std::byte>& bytes, const Hello& hello) {
  Buffer meta = hello.encode();
  FrameHeader header;
  header.kind = static_cast<std::uint16_t>(FrameKind::kHello);
  header.meta_bytes = static_cast<std::uint32_t>(meta.size());
  std::array<std::byte, FrameHeader::kBytes> raw;
  header.encode(raw);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  bytes.insert(bytes.end(), meta.bytes().begin(), meta.bytes().end());
}

asio::awaitable<Result<Hello>> read_hello(Channel::Socket& socket, std::string address) {
  const std::string gone = address + ": closed the connection before its hello";
  std::array<std::byte, FrameHeader::kBytes> raw;
  Status status = co_await read_exactly(socket, asio::buffer(raw), gone);
  if (!status.ok()) co_return status;
  auto header = FrameHeader::decode(raw, kHelloBytesMax, 0);
  if (!header.ok()) co_return header.status().with_context(address);
  if (header->kind != static_cast<std::uint16_t>(FrameKind::kHello) || header->fd_count != 0) {
    co_return invalid_argument(address + ": the first frame is not a hello");
  }
  std::byte* writable = nullptr;
  Buffer meta = Buffer::allocate(header->meta_bytes, &writable);
  status = co_await read_exactly(socket, asio::buffer(writable, header->meta_bytes), gone);
  if (!status.ok()) co_return status;
  auto hello = Hello::decode(meta);
  if (!hello.ok()) co_return hello.status().with_context(address);
  co_return hello;
}

/// What speaks against talking to this peer.
Status judge(const Hello& hello, const Credentials& own, const std::string& address) {
  if (hello.protocol_min > kProtocolMax || hello.protocol_max < kProtocolMin) {
    return unimplemented(address + ": release " + hello.version + " speaks protocols " +
                         std::to_string(hello.protocol_min) + " to " +
                         std::to_string(hello.protocol_max) + ", this release (" + kRelease + ") " +
                         std::to_string(kProtocolMin) + " to " + std::to_string(kProtocolMax));
  }
  if (!hello.cluster.is_none() && !own.cluster.is_none() && hello.cluster != own.cluster) {
    return invalid_argument(address + ": belongs to cluster " + hello.cluster.short_hex() +
                            ", not to " + own.cluster.short_hex());
  }
  return {};
}

PeerInfo peer_of(const Hello& hello, Channel::Socket& socket, std::string address) {
  PeerInfo peer;
  peer.role = hello.role;
  peer.cluster = hello.cluster;
  peer.node = hello.node;
  peer.worker = hello.worker;
  peer.incarnation = hello.incarnation;
  peer.protocol = std::min(hello.protocol_max, kProtocolMax);
  peer.version = hello.version;
  peer.pid = static_cast<pid_t>(hello.pid);
  if (address.starts_with("unix:")) {
    ucred kernel_says{};
    socklen_t size = sizeof kernel_says;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &kernel_says, &size) == 0) {
      peer.pid = kernel_says.pid;
      peer.uid = kernel_says.uid;
    }
  }
  peer.address = std::move(address);
  return peer;
}

}  // namespace

// ---- caller

asio::awaitable<Result<PeerInfo>> handshake_caller(Channel::Socket& socket, WorkerId target,
                                                   const Credentials& credentials,
                                                   std::string address, SessionTerms& terms) {
  Preamble preamble{.target = target};
  const Nonce nonce = fresh_nonce();
  const std::string gone = address + ": closed the connection during the handshake";
  std::vector<std::byte> bytes;
  auto append = [&bytes](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  append(preamble.encode());
  append(nonce);
  Status status = co_await write_socket(socket, asio::buffer(bytes), gone);
  if (!status.ok()) co_return status;

  status = co_await read_answer(socket, address);
  if (!status.ok()) co_return status;
  Nonce peer_nonce;
  status = co_await read_exactly(socket, asio::buffer(peer_nonce), gone);
  if (!status.ok()) co_return status;

  bytes.clear();
  append(prove(credentials.token, kCallerLabel, preamble, nonce, peer_nonce));
  Hello own = Hello::of(credentials);
  own.terms = terms;
  append_hello(bytes, own);
  status = co_await write_socket(socket, asio::buffer(bytes), gone);
  if (!status.ok()) co_return status;

  status = co_await read_answer(socket, address);
  if (!status.ok()) co_return status;
  Proof proof;
  status = co_await read_exactly(socket, asio::buffer(proof), gone);
  if (!status.ok()) co_return status;
  if (!same(proof, prove(credentials.token, kCalleeLabel, preamble, nonce, peer_nonce)))
    co_return wrong_token(address);

  auto hello = co_await read_hello(socket, address);
  if (!hello.ok()) co_return hello.status();
  // Our own judgement first: it says more than the peer's about the same mismatch.
  status = judge(*hello, credentials, address);
  if (status.ok()) status = hello->refusal.with_context(address);
  if (!status.ok()) co_return status;
  if (!target.is_none() && hello->worker != target) {
    co_return not_found(address + ": worker " + target.short_hex() +
                        " is gone; another process answers in its place");
  }
  terms = hello->terms;
  co_return peer_of(*hello, socket, std::move(address));
}

// ---- callee

bool is_http(std::string_view begun) {
  constexpr std::size_t kMethodMax = 7;  // OPTIONS; a preamble's magic has one letter more
  std::size_t letters = 0;
  while (letters < begun.size() && begun[letters] >= 'A' && begun[letters] <= 'Z') ++letters;
  return letters >= 3 && letters <= kMethodMax && letters < begun.size() && begun[letters] == ' ';
}

asio::awaitable<Result<std::string>> read_first_bytes(Channel::Socket& socket) {
  std::string begun(Preamble::kBytes, '\0');
  std::size_t size = 0;
  while (size < begun.size() && !is_http(std::string_view(begun).substr(0, size))) {
    auto [ec, bytes] =
        co_await socket.async_read_some(asio::buffer(begun.data() + size, begun.size() - size),
                                        asio::as_tuple(asio::use_awaitable));
    if (ec == asio::error::operation_aborted) co_return cancelled("the preamble: cancelled");
    if (ec) co_return unavailable("closed the connection before its preamble");
    size += bytes;
  }
  begun.resize(size);
  co_return begun;
}

asio::awaitable<void> refuse(Channel::Socket& socket, Status why) {
  Nonce nonce;
  Status status = co_await read_exactly(socket, asio::buffer(nonce), "nonce");
  if (status.ok()) co_await send_refusal(socket, std::move(why));
}

asio::awaitable<Result<PeerInfo>> handshake_callee(Channel::Socket& socket, Preamble preamble,
                                                   const Credentials& credentials,
                                                   std::string address, const SessionAnswer& answer,
                                                   SessionTerms& terms) {
  const std::string gone = address + ": closed the connection during the handshake";
  Nonce peer_nonce;
  Status status = co_await read_exactly(socket, asio::buffer(peer_nonce), gone);
  if (!status.ok()) co_return status;
  Status refusal;
  if (preamble.version != kWireVersion) {
    refusal = unimplemented("wire version " + std::to_string(preamble.version) +
                            " is not spoken here, only " + std::to_string(kWireVersion));
  } else if ((preamble.flags & Preamble::kFlagTls) != 0) {
    refusal = unimplemented("TLS is not set up on this port");
  } else if (preamble.flags != 0) {
    refusal = unimplemented("unknown preamble flags " + std::to_string(preamble.flags));
  }
  if (!refusal.ok()) {
    co_await send_refusal(socket, refusal);
    co_return refusal.with_context(address);
  }

  const Nonce nonce = fresh_nonce();
  std::vector<std::byte> bytes;
  auto append = [&bytes](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  append(Answer{}.encode());
  append(nonce);
  status = co_await write_socket(socket, asio::buffer(bytes), gone);
  if (!status.ok()) co_return status;

  Proof proof;
  status = co_await read_exactly(socket, asio::buffer(proof), gone);
  if (!status.ok()) co_return status;
  if (!same(proof, prove(credentials.token, kCallerLabel, preamble, peer_nonce, nonce))) {
    refusal = invalid_argument(
        "wrong token: the caller belongs to another cluster, or to an earlier start of this one");
    co_await send_refusal(socket, refusal);
    co_return refusal.with_context(address);
  }

  auto hello = co_await read_hello(socket, address);
  if (!hello.ok()) co_return hello.status();
  status = judge(*hello, credentials, address);
  Hello own = Hello::of(credentials);
  terms = hello->terms;
  if (status.ok() && answer && terms.session != 0) {
    Result<SessionTerms> answered = answer(terms);
    if (answered.ok())
      own.terms = *answered;
    else
      status = answered.status();
  }
  own.refusal = status;
  bytes.clear();
  append(Answer{}.encode());
  append(prove(credentials.token, kCalleeLabel, preamble, peer_nonce, nonce));
  append_hello(bytes, own);
  Status sent = co_await write_socket(socket, asio::buffer(bytes), gone);
  if (!status.ok()) co_return status;
  if (!sent.ok()) co_return sent;
  co_return peer_of(*hello, socket, std::move(address));
}

}  // namespace runtime
