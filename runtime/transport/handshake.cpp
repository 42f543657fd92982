#include "runtime/transport/handshake.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/core/check.h"
#include "runtime/core/version.h"
#include "runtime/transport/noise.h"
#include "runtime/transport/socket_stream.h"

// g++ 12 inlines the coroutine frame's operator new and then takes its own operator delete for a
// stranger.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace runtime {

namespace {

constexpr char kPreambleMagic[8] = {'S', 'T', 'A', 'R', 'L', 'I', 'N', 'G'};
// A caller of version 1 sends this much after its preamble before it gets an answer.
constexpr std::size_t kFirstNonceBytes = 32;
constexpr std::string_view kRecordLabel = "starling records AES-256-GCM";
constexpr std::size_t kReasonBytesMax = 1024;
constexpr std::uint64_t kHelloBytesMax = 16 << 10;

/// The payload of the callee's message: how what follows the handshake travels.
enum class Traffic : std::uint8_t { kSealed = 0, kPlain = 1 };
using CallerMessage = std::array<std::byte, NoiseHandshake::kOverheadBytes>;
using CalleeMessage = std::array<std::byte, NoiseHandshake::kOverheadBytes + sizeof(Traffic)>;

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

Status wrong_token(const std::string& address) {
  return invalid_argument(
      address +
      ": wrong token: the peer belongs to another cluster, or to an earlier start of this one, or "
      "the token was changed");
}

/// Reads exactly the buffer. A peer that goes away says so in `what`.
asio::awaitable<Status> read_exactly(ConnectionSocket& socket, asio::mutable_buffer into,
                                     std::string what) {
  auto [ec, bytes] = co_await asio::async_read(socket, into, asio::as_tuple(asio::use_awaitable));
  if (ec == asio::error::operation_aborted) co_return cancelled(what + ": cancelled");
  if (ec) co_return unavailable(what);
  co_return Status();
}

asio::awaitable<Status> write_socket(ConnectionSocket& socket, asio::const_buffer from,
                                     std::string what) {
  auto [ec, bytes] = co_await asio::async_write(socket, from, asio::as_tuple(asio::use_awaitable));
  if (ec == asio::error::operation_aborted) co_return cancelled(what + ": cancelled");
  if (ec) co_return unavailable(what);
  co_return Status();
}

/// A party on the way can make up a refusal: it says that no connection comes about, nothing
/// else.
ErrorCode believed(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kUnimplemented:
    case ErrorCode::kResourceExhausted: return code;
    default: return ErrorCode::kUnavailable;
  }
}

/// An answer; a refusal comes back as the failure it names.
asio::awaitable<Status> read_answer(ConnectionSocket& socket, std::string address) {
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
  if (answer.code == 0 && answer.reason_bytes != 0)
    co_return invalid_argument(address + ": a malformed answer");
  if (answer.code == 0) co_return Status();
  std::string reason(std::min<std::size_t>(answer.reason_bytes, kReasonBytesMax), '\0');
  status =
      co_await read_exactly(socket, asio::buffer(reason), address + ": refused the connection");
  if (!status.ok()) co_return status;
  // The peer has proved nothing yet: show only what cannot confuse a terminal.
  std::replace_if(
      reason.begin(), reason.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  co_return Status(believed(error_code_from_wire(answer.code)), address + ": " + reason);
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
asio::awaitable<void> send_refusal(ConnectionSocket& socket, Status why) {
  std::vector<std::byte> bytes = encode_refusal(why);
  Status sent = co_await write_socket(socket, asio::buffer(bytes), "refusal");
  if (!sent.ok()) co_return;
  boost::system::error_code ignored;
  socket.shutdown(ConnectionSocket::shutdown_send, ignored);
  std::array<std::byte, 256> rest;
  for (int reads = 0; reads < 64; ++reads) {
    auto [ec, count] =
        co_await socket.async_read_some(asio::buffer(rest), asio::as_tuple(asio::use_awaitable));
    if (ec || count == 0) co_return;
  }
}

/// A Hello as it travels: the size of the sealed message, then that. What is sealed is a frame's
/// meta.
void append_hello(std::vector<std::byte>& bytes, const Hello& hello, MessageCipher& cipher) {
  const Buffer meta = hello.encode();
  const auto size = static_cast<std::uint32_t>(meta.size() + MessageCipher::kTagBytes);
  const std::size_t begin = bytes.size();
  bytes.resize(begin + sizeof size);
  std::memcpy(bytes.data() + begin, &size, sizeof size);
  cipher.encrypt({}, meta.bytes(), bytes);
}

asio::awaitable<Result<Hello>> read_hello(ConnectionSocket& socket, MessageCipher& cipher,
                                          std::string address) {
  const std::string gone = address + ": closed the connection before its hello";
  std::uint32_t size = 0;
  Status status = co_await read_exactly(socket, asio::buffer(&size, sizeof size), gone);
  if (!status.ok()) co_return status;
  if (size <= MessageCipher::kTagBytes || size > kHelloBytesMax + MessageCipher::kTagBytes ||
      (size - MessageCipher::kTagBytes) % 8 != 0)
    co_return invalid_argument(address + ": malformed hello: " + std::to_string(size) + " bytes");
  std::vector<std::byte> sealed(size);
  status = co_await read_exactly(socket, asio::buffer(sealed), gone);
  if (!status.ok()) co_return status;
  std::byte* writable = nullptr;
  Buffer meta = Buffer::allocate(size - MessageCipher::kTagBytes, &writable);
  if (!cipher.decrypt({}, sealed, {writable, meta.size()}))
    co_return invalid_argument(address + ": a hello that was changed on its way");
  auto hello = Hello::decode(meta);
  if (!hello.ok()) co_return hello.status().with_context(address);
  co_return hello;
}

/// What both sides know once they have each other's messages.
struct Session {
  MessageCipher sending;
  MessageCipher receiving;
  SymmetricKey sealing_records;
  SymmetricKey opening_records;

  Session(const SessionKeys& keys, NoiseHandshake::Side side)
      : Session(
            side == NoiseHandshake::Side::kInitiator ? keys.from_initiator : keys.from_responder,
            side == NoiseHandshake::Side::kInitiator ? keys.from_responder : keys.from_initiator) {}
  Session(const SymmetricKey& outward, const SymmetricKey& inward)
      : sending(outward),
        receiving(inward),
        sealing_records(derive_key(outward, kRecordLabel)),
        opening_records(derive_key(inward, kRecordLabel)) {}

  std::unique_ptr<SocketStream> stream(Traffic traffic, bool is_unix) const {
    if (traffic == Traffic::kPlain) return std::make_unique<PlainStream>(is_unix);
    return std::make_unique<SealedStream>(sealing_records, opening_records);
  }
};

bool is_unix_address(std::string_view address) { return address.starts_with("unix:"); }

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

PeerInfo peer_of(const Hello& hello, ConnectionSocket& socket, std::string address) {
  PeerInfo peer;
  peer.role = hello.role;
  peer.cluster = hello.cluster;
  peer.node = hello.node;
  peer.worker = hello.worker;
  peer.incarnation = hello.incarnation;
  peer.protocol = std::min(hello.protocol_max, kProtocolMax);
  peer.version = hello.version;
  peer.pid = static_cast<pid_t>(hello.pid);
  if (is_unix_address(address)) {
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

asio::awaitable<Result<Handshaken>> handshake_caller(ConnectionSocket& socket, Preamble preamble,
                                                     const Credentials& credentials,
                                                     std::string address, SessionTerms& terms) {
  const TokenKey own_key = key_of_caller(credentials.token.present());
  preamble.key = own_key.id;
  const auto prologue = preamble.encode();
  NoiseHandshake noise(NoiseHandshake::Side::kInitiator, own_key.key, prologue);
  const std::string gone = address + ": closed the connection during the handshake";
  std::vector<std::byte> bytes(prologue.begin(), prologue.end());
  noise.write({}, bytes);
  Status status = co_await write_socket(socket, asio::buffer(bytes), gone);
  if (!status.ok()) co_return status;

  status = co_await read_answer(socket, address);
  if (!status.ok()) co_return status;
  CalleeMessage message;
  status = co_await read_exactly(socket, asio::buffer(message), gone);
  if (!status.ok()) co_return status;
  Traffic traffic = Traffic::kSealed;
  if (!noise.read(message, std::as_writable_bytes(std::span(&traffic, 1))))
    co_return wrong_token(address);
  if (traffic != Traffic::kSealed && traffic != Traffic::kPlain)
    co_return unimplemented(address + ": asks to continue in a way that this release (" + kRelease +
                            ") does not know");

  Session session(noise.split(), NoiseHandshake::Side::kInitiator);
  bytes.clear();
  Hello own = Hello::of(credentials);
  own.terms = terms;
  append_hello(bytes, own, session.sending);
  status = co_await write_socket(socket, asio::buffer(bytes), gone);
  if (!status.ok()) co_return status;
  auto hello = co_await read_hello(socket, session.receiving, address);
  if (!hello.ok()) co_return hello.status();
  // Our own judgement first: it says more than the peer's about the same mismatch.
  status = judge(*hello, credentials, address);
  if (status.ok()) status = hello->refusal.with_context(address);
  if (!status.ok()) co_return status;
  if (!preamble.target.is_none() && hello->worker != preamble.target) {
    co_return not_found(address + ": worker " + preamble.target.short_hex() +
                        " is gone; another process answers in its place");
  }
  terms = hello->terms;
  auto stream = session.stream(traffic, is_unix_address(address));
  Handshaken done{peer_of(*hello, socket, std::move(address)), std::move(stream)};
  co_return done;
}

// ---- callee

bool is_http(std::string_view received) {
  constexpr std::size_t kMethodMax = 7;  // OPTIONS; a preamble's magic has one letter more
  std::size_t letters = 0;
  while (letters < received.size() && received[letters] >= 'A' && received[letters] <= 'Z')
    ++letters;
  return letters >= 3 && letters <= kMethodMax && letters < received.size() &&
         received[letters] == ' ';
}

bool is_tls(std::string_view received) {
  constexpr char kHandshakeRecord = 0x16, kMajorVersion = 3;
  return received.size() >= 2 && received[0] == kHandshakeRecord && received[1] == kMajorVersion;
}

asio::awaitable<Result<std::string>> read_first_bytes(ConnectionSocket& socket) {
  std::string received(Preamble::kCommonBytes, '\0');
  std::size_t size = 0;
  const auto is_other = [&] {
    const std::string_view read = std::string_view(received).substr(0, size);
    return is_http(read) || is_tls(read);
  };
  while (size < received.size() && !is_other()) {
    auto [ec, bytes] = co_await socket.async_read_some(
        asio::buffer(received.data() + size, received.size() - size),
        asio::as_tuple(asio::use_awaitable));
    if (ec == asio::error::operation_aborted) co_return cancelled("the preamble: cancelled");
    if (ec) co_return unavailable("closed the connection before its preamble");
    size += bytes;
  }
  received.resize(size);
  co_return received;
}

asio::awaitable<Result<Preamble>> read_preamble(ConnectionSocket& socket, std::string received) {
  const auto version = Preamble::version_of(std::as_bytes(std::span(received)));
  if (!version.ok()) co_return version.status();
  if (*version != kWireVersion) co_return Preamble::decode(std::as_bytes(std::span(received)));
  received.resize(Preamble::kBytes);
  Status status = co_await read_exactly(socket,
                                        asio::buffer(received.data() + Preamble::kCommonBytes,
                                                     Preamble::kBytes - Preamble::kCommonBytes),
                                        "closed the connection before its preamble");
  if (!status.ok()) co_return status;
  co_return Preamble::decode(std::as_bytes(std::span(received)));
}

asio::awaitable<void> refuse(ConnectionSocket& socket, const Preamble& preamble, Status why) {
  std::vector<std::byte> unread(preamble.version == kWireVersion ? sizeof(CallerMessage)
                                                                 : kFirstNonceBytes);
  Status status = co_await read_exactly(socket, asio::buffer(unread), "handshake");
  if (status.ok()) co_await send_refusal(socket, std::move(why));
}

namespace {

Status judge_submitter(const Hello& hello) {
  if (hello.role == Role::kTool) return {};
  return invalid_argument(
      "a submitter's token starts no node and no driver: it is for `starling submit`");
}

/// With the first of the tokens that count which the caller has proved; nothing: with none.
std::unique_ptr<NoiseHandshake> read_caller(const CallerMessage& message, const Preamble& preamble,
                                            const Keyring& keyring) {
  const auto prologue = preamble.encode();
  for (const std::string& token : keyring.accepted()) {
    const auto key = expected_key(token, preamble.key);
    if (!key) return nullptr;
    auto noise = std::make_unique<NoiseHandshake>(NoiseHandshake::Side::kResponder, *key, prologue);
    if (noise->read(message, {})) return noise;
  }
  return nullptr;
}

/// What speaks against a preamble of any sender.
Status judge_preamble(const Preamble& preamble) {
  if (preamble.version != kWireVersion)
    return unimplemented("wire version " + std::to_string(preamble.version) +
                         " is not spoken here, only " + std::to_string(kWireVersion) +
                         ": use the same release on all machines");
  if (preamble.flags != 0)
    return unimplemented("unknown preamble flags " + std::to_string(preamble.flags));
  return {};
}

}  // namespace

asio::awaitable<Result<Handshaken>> handshake_callee(ConnectionSocket& socket, Inbound inbound,
                                                     const Credentials& credentials,
                                                     std::string address,
                                                     const SessionAnswer& answer,
                                                     SessionTerms& terms) {
  Status refusal = judge_preamble(inbound.preamble);
  if (refusal.ok() && !is_known_key(inbound.preamble.key))
    refusal = unimplemented("a key of a kind that this release (" + std::string(kRelease) +
                            ") does not know");
  if (!refusal.ok()) {
    co_await refuse(socket, inbound.preamble, refusal);
    co_return refusal.with_context(address);
  }
  const std::string gone = address + ": closed the connection during the handshake";
  CallerMessage message;
  Status status = co_await read_exactly(socket, asio::buffer(message), gone);
  if (!status.ok()) co_return status;
  std::unique_ptr<NoiseHandshake> noise = read_caller(message, inbound.preamble, credentials.token);
  if (!noise) {
    refusal = invalid_argument(
        "wrong token: the caller belongs to another cluster, or to an earlier start of this one, "
        "or the token was changed");
    co_await send_refusal(socket, refusal);
    co_return refusal.with_context(address);
  }

  const bool is_unix = is_unix_address(address);
  const Traffic traffic = is_unix || inbound.plain ? Traffic::kPlain : Traffic::kSealed;
  const auto first = Answer{}.encode();
  std::vector<std::byte> bytes(first.begin(), first.end());
  noise->write(std::as_bytes(std::span(&traffic, 1)), bytes);
  status = co_await write_socket(socket, asio::buffer(bytes), gone);
  if (!status.ok()) co_return status;

  // The caller's message may be a recorded one: only a Hello under the new keys proves it.
  Session session(noise->split(), NoiseHandshake::Side::kResponder);
  auto hello = co_await read_hello(socket, session.receiving, address);
  if (!hello.ok()) co_return hello.status();
  const bool is_submitter = inbound.preamble.key == submitter_key_id();
  status = judge(*hello, credentials, address);
  if (status.ok() && is_submitter) status = judge_submitter(*hello);
  Hello own = Hello::of(credentials);
  terms = hello->terms;
  PeerInfo peer = peer_of(*hello, socket, std::move(address));
  peer.is_submitter = is_submitter;
  if (status.ok() && answer) {
    Result<SessionTerms> answered = answer(peer, terms);
    if (answered.ok())
      own.terms = *answered;
    else
      status = answered.status();
  }
  own.refusal = status;
  bytes.clear();
  append_hello(bytes, own, session.sending);
  Status sent = co_await write_socket(socket, asio::buffer(bytes), gone);
  if (!status.ok()) co_return status;
  if (!sent.ok()) co_return sent;
  auto stream = session.stream(traffic, is_unix);
  Handshaken done{std::move(peer), std::move(stream)};
  co_return done;
}

}  // namespace runtime
