// How two processes come to trust a connection: a fixed preamble, a mutual proof of the cluster
// token, then Hello.
//
//   caller -> node    preamble (32 bytes), nonce (32)
//   callee -> caller  answer (16), nonce (32)
//   caller -> callee  proof (32), Hello frame
//   callee -> caller  answer (16), proof (32), Hello frame
//
// A proof is HMAC-SHA256(token, label, preamble, both nonces), with another label for each side, so
// that neither can be reflected. Nothing is parsed with Cap'n Proto before the peer has proved the
// token.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/asio.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/transport/channel.h"
#include "runtime/transport/frame.h"

namespace runtime {

/// The layout of preamble and proofs. Hello negotiates everything above it.
inline constexpr std::uint16_t kWireVersion = 1;
/// The range of frame protocols that this build speaks.
inline constexpr std::uint32_t kProtocolMin = 1;
inline constexpr std::uint32_t kProtocolMax = 2;
/// From this on a head knows requests by their ids: none runs twice.
inline constexpr std::uint32_t kProtocolRequestIds = 2;

/// Who this process is, and the secret that its cluster shares.
struct Credentials {
  std::string token;  // any bytes; the same in the whole cluster
  ClusterId cluster;  // none: not known yet, learn it from the peer
  Role role = Role::kTool;
  NodeId node;      // the node this process is, or belongs to
  WorkerId worker;  // workers only
  std::uint64_t incarnation = 0;
};

/// The first bytes on every connection: magic, version, flags, and the worker it is meant for.
struct Preamble {
  static constexpr std::size_t kBytes = 32;
  static constexpr std::uint16_t kFlagTls = 1;  // reserved: TLS follows the preamble

  std::uint16_t version = kWireVersion;
  std::uint16_t flags = 0;
  WorkerId target{};  // none: whoever listens

  std::array<std::byte, kBytes> encode() const;
  /// Errors: kInvalidArgument when these are not a preamble's bytes. Any version decodes; the
  /// callee decides.
  static Result<Preamble> decode(std::span<const std::byte> raw);
};

/// The kAttach frame with which a node hands an accepted connection to its worker, and its
/// decoding. Errors of decode_attach: kInvalidArgument unless there is one descriptor and a
/// preamble.
Message encode_attach(const Preamble& preamble, FileDescriptor socket);
Result<Preamble> decode_attach(Message& message, FileDescriptor* socket);

/// What one side says of a connection that outlives its socket (channel_lasting.h).
struct SessionTerms {
  std::uint64_t session = 0;   // 0: none
  bool resumes = false;        // the sender knows the session from before
  std::uint64_t received = 0;  // frames of it that the sender has
};

/// What a callee answers to a caller's terms, or why it refuses them. On the loop.
using SessionAnswer = std::function<Result<SessionTerms>(const SessionTerms& caller)>;

/// What travels in the Hello frame's message. Errors of decode: kInvalidArgument.
struct Hello {
  std::uint32_t protocol_min = kProtocolMin;
  std::uint32_t protocol_max = kProtocolMax;
  std::string version;
  Role role = Role::kTool;
  ClusterId cluster;
  NodeId node;
  WorkerId worker;
  std::uint64_t incarnation = 0;
  std::int64_t pid = 0;
  Status refusal;  // a failure when the sender ends the connection: why
  SessionTerms terms;

  Buffer encode() const;
  static Result<Hello> decode(const Buffer& meta);
  static Hello of(const Credentials& credentials);
};

/// Both sides of the handshake on a connected socket. They take the time they need: bound them by a
/// timer that cancels the socket. `address` is what messages call the peer. Errors as connect()
/// lists them. `terms`: in, what this side offers; out, what the peer says. `answer` and `terms`
/// outlive the handshake; the answer may be empty: no session then.
asio::awaitable<Result<PeerInfo>> handshake_caller(Channel::Socket& socket, WorkerId target,
                                                   const Credentials& credentials,
                                                   std::string address, SessionTerms& terms);
asio::awaitable<Result<PeerInfo>> handshake_callee(Channel::Socket& socket, Preamble preamble,
                                                   const Credentials& credentials,
                                                   std::string address, const SessionAnswer& answer,
                                                   SessionTerms& terms);
/// Reads what a connection begins with, nothing more: as many bytes as a preamble has, or what a
/// peer that speaks HTTP has sent of them.
asio::awaitable<Result<std::string>> read_first_bytes(Channel::Socket& socket);
/// Whether a connection that begins with these bytes is of a peer that speaks HTTP: a method, and a
/// space.
bool is_http(std::string_view begun);
/// Tells the caller why it is turned away, in the place of the first answer, and lets it read that
/// before the close.
asio::awaitable<void> refuse(Channel::Socket& socket, Status why);

}  // namespace runtime
