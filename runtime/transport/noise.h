// The Noise handshake NNpsk0 (Trevor Perrin, "The Noise Protocol Framework", revision 34), with
// X25519, ChaCha20-Poly1305 and SHA-256:
//
//   initiator -> responder   psk, e
//   responder -> initiator   e, ee
//
// Both sides prove the pre-shared key and agree on session keys with forward secrecy. The prologue
// is data that both sides must have seen identically; it is authenticated, not sent. Private to
// runtime/transport.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace runtime {

using SymmetricKey = std::array<std::byte, 32>;

/// The cluster's token, any bytes, as a key. A token of the same text is the same key everywhere.
SymmetricKey key_of_token(std::string_view token);
/// Another key, which says nothing about `key`.
SymmetricKey derive_key(const SymmetricKey& key, std::string_view label);

/// What the two sides agreed on, one key for each direction.
struct SessionKeys {
  SymmetricKey from_initiator;
  SymmetricKey from_responder;
};

/// ChaCha20-Poly1305 (RFC 8439) under a key and a counter of messages, as Noise uses it.
class MessageCipher {
 public:
  static constexpr std::size_t kTagBytes = 16;

  explicit MessageCipher(const SymmetricKey& key) : key_(key) {}

  /// Appends the encrypted text and its tag to `out`.
  void encrypt(std::span<const std::byte> associated, std::span<const std::byte> plain,
               std::vector<std::byte>& out);
  /// `sealed` is a text and its tag. False: it is not what the peer encrypted; `plain` is garbage.
  bool decrypt(std::span<const std::byte> associated, std::span<const std::byte> sealed,
               std::span<std::byte> plain);

 private:
  SymmetricKey key_;
  std::uint64_t messages_ = 0;
};

class NoiseHandshake {
 public:
  enum class Side { kInitiator, kResponder };
  static constexpr std::size_t kKeyBytes = 32;
  /// What a message takes besides its payload.
  static constexpr std::size_t kOverheadBytes = kKeyBytes + MessageCipher::kTagBytes;

  /// `ephemeral`: this side's private key; a fresh one unless a test knows better.
  NoiseHandshake(Side side, const SymmetricKey& psk, std::span<const std::byte> prologue,
                 std::optional<SymmetricKey> ephemeral = {});
  NoiseHandshake(const NoiseHandshake&) = delete;
  NoiseHandshake& operator=(const NoiseHandshake&) = delete;
  ~NoiseHandshake();

  /// Appends this side's message, of payload.size() + kOverheadBytes. The initiator writes first.
  void write(std::span<const std::byte> payload, std::vector<std::byte>& out);
  /// Reads the peer's message into `payload`, which has its size less kOverheadBytes. False: the
  /// peer has another key, or another prologue, or the message was changed on its way. The
  /// handshake is then useless.
  [[nodiscard]] bool read(std::span<const std::byte> message, std::span<std::byte> payload);
  /// After both messages.
  SessionKeys split() const;

 private:
  void mix_hash(std::span<const std::byte> bytes);
  void mix_key(std::span<const std::byte> material);
  void mix_psk(const SymmetricKey& psk);
  void encrypt_and_hash(std::span<const std::byte> plain, std::vector<std::byte>& out);
  bool decrypt_and_hash(std::span<const std::byte> sealed, std::span<std::byte> plain);
  [[nodiscard]] bool agree();

  const Side side_;
  SymmetricKey chaining_key_;
  SymmetricKey hash_;
  MessageCipher cipher_;
  SymmetricKey secret_;    // of this side, ephemeral
  SymmetricKey peer_{};    // the peer's ephemeral public key
  SymmetricKey shared_{};  // what the two ephemeral keys make
  int messages_ = 0;
};

}  // namespace runtime
