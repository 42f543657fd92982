// The handshake of two processes: a fixed preamble, a Noise handshake with the cluster's token as
// the pre-shared key, then Hello, encrypted.
//
//   caller -> node    preamble (80 bytes), Noise message 1 (48)
//   callee -> caller  answer (16), Noise message 2 (49)
//   caller -> callee  Hello, sealed
//   callee -> caller  Hello, sealed
//
// The preamble is the handshake's prologue: who changes it on its way ends the handshake. It says
// by which address the caller reached the callee, so that a relay of the handshake to another node
// is detected. Nothing is parsed with Cap'n Proto before the peer has proved the
// token.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/asio.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"
#include "runtime/transport/connection_socket.h"
#include "runtime/transport/dialled_address.h"
#include "runtime/transport/file_descriptor.h"
#include "runtime/transport/frame.h"
#include "runtime/transport/keyring.h"
#include "runtime/transport/peer_info.h"
#include "runtime/transport/token_key.h"

namespace runtime {

class SocketStream;

/// The layout of preamble and handshake. Hello negotiates everything above it.
inline constexpr std::uint16_t kWireVersion = 2;
/// The range of frame protocols that this build speaks.
inline constexpr std::uint32_t kProtocolMin = 1;
inline constexpr std::uint32_t kProtocolMax = 2;
/// From this on a head knows requests by their ids: none runs twice.
inline constexpr std::uint32_t kProtocolRequestIds = 2;

/// Who this process is, and the secret that its cluster shares.
struct Credentials {
  Keyring token;      // the same in the whole cluster
  ClusterId cluster;  // none: not known yet, learn it from the peer
  Role role = Role::kTool;
  NodeId node;      // the node this process is, or belongs to
  WorkerId worker;  // workers only
  std::uint64_t incarnation = 0;
};

/// The first bytes on every connection: magic, version, flags, whom it is meant for, and where that
/// one is taken to be.
struct Preamble {
  static constexpr std::size_t kBytes = 80;
  /// What every version of the preamble begins with: magic, version, flags, zeros, target.
  static constexpr std::size_t kCommonBytes = 32;

  std::uint16_t version = kWireVersion;
  std::uint16_t flags = 0;  // none yet: all are refused
  WorkerId target{};        // none: any listener
  AddressDigest dialled{};  // of "HOST:PORT" as the caller was given it; none on Unix sockets
  AddressDigest reached{};  // of the address and port that this led to; none on Unix sockets
  KeyId key{};              // whose key proves the caller; none: the cluster's token

  std::array<std::byte, kBytes> encode() const;
  /// Of a preamble that begins with these bytes. Errors: kInvalidArgument when none does.
  static Result<std::uint16_t> version_of(std::span<const std::byte> received);
  /// Errors: kInvalidArgument when these are not a preamble's bytes. Any version decodes; the
  /// callee decides. Of another version, all behind the common bytes is left out.
  static Result<Preamble> decode(std::span<const std::byte> raw);
};

/// A connection that has arrived and said for whom: what a node knows of one that it hands on.
struct Inbound {
  Preamble preamble;
  bool plain = false;  // what follows the handshake is not to be encrypted
};

/// The kAttach frame with which a node hands an accepted connection to its worker, and its
/// decoding. Errors of decode_attach: kInvalidArgument unless there is one descriptor and what
/// encode_attach wrote.
Message encode_attach(const Inbound& inbound, FileDescriptor socket);
Result<Inbound> decode_attach(Message& message, FileDescriptor* socket);

/// What one side says of a connection that outlives its socket (lasting_state.h).
struct SessionTerms {
  std::uint64_t session = 0;   // 0: none
  bool resumes = false;        // the sender knows the session from before
  std::uint64_t received = 0;  // frames of it that the sender has
};

/// What a callee answers to a caller that has proved itself, and to its terms, or why it refuses
/// them. On the loop.
using SessionAnswer =
    std::function<Result<SessionTerms>(const PeerInfo& peer, const SessionTerms& caller)>;

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

/// A peer that has proved itself, and how bytes travel from now on.
struct Handshaken {
  PeerInfo peer;
  std::unique_ptr<SocketStream> stream;
};

/// Both sides of the handshake on a connected socket. They take the time they need: bound them by a
/// timer that cancels the socket. `address` is what messages call the peer. Errors as connect()
/// lists them. `terms`: in, what this side offers; out, what the peer says. `answer` and `terms`
/// outlive the handshake; the answer may be empty: no session then. The caller proves the token
/// that its credentials hold as the present one; the callee accepts all that count.
asio::awaitable<Result<Handshaken>> handshake_caller(ConnectionSocket& socket, Preamble preamble,
                                                     const Credentials& credentials,
                                                     std::string address, SessionTerms& terms);
asio::awaitable<Result<Handshaken>> handshake_callee(ConnectionSocket& socket, Inbound inbound,
                                                     const Credentials& credentials,
                                                     std::string address,
                                                     const SessionAnswer& answer,
                                                     SessionTerms& terms);
/// Reads what a connection begins with, nothing more. That is the bytes that all preambles have in
/// common, or what a peer that speaks HTTP has sent of them.
asio::awaitable<Result<std::string>> read_first_bytes(ConnectionSocket& socket);
/// Reads what is left of a preamble that began with these bytes.
/// Errors: kInvalidArgument when they begin none, kUnavailable when the peer goes away.
asio::awaitable<Result<Preamble>> read_preamble(ConnectionSocket& socket, std::string received);
/// Whether a connection that begins with these bytes is of a peer that speaks HTTP: a method, and a
/// space.
bool is_http(std::string_view received);
/// The same of a peer that speaks TLS, as an HTTPS client does: the header of its first record.
bool is_tls(std::string_view received);
/// Tells the caller why it is turned away, in the place of the first answer, and lets it read that
/// before the close. Of any version's preamble.
asio::awaitable<void> refuse(ConnectionSocket& socket, const Preamble& preamble, Status why);

}  // namespace runtime
