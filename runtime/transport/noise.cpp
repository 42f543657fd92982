#include "runtime/transport/noise.h"

#include <sodium/crypto_aead_chacha20poly1305.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_hash_sha256.h>
#include <sodium/crypto_scalarmult_curve25519.h>
#include <sodium/utils.h>

#include <cstring>

#include "runtime/core/check.h"
#include "runtime/core/random.h"

namespace runtime {

namespace {

// 36 bytes: longer than a hash, so the protocol's name is hashed to begin with.
constexpr std::string_view kNoiseName = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
constexpr std::string_view kTokenLabel = "starling token as pre-shared key";

unsigned char* out_raw(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
const unsigned char* in_raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
std::span<const std::byte> text_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

SymmetricKey sha256(std::initializer_list<std::span<const std::byte>> parts) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  for (auto part : parts) crypto_hash_sha256_update(&state, in_raw(part), part.size());
  SymmetricKey digest;
  crypto_hash_sha256_final(&state, out_raw(digest));
  return digest;
}

SymmetricKey hmac(std::span<const std::byte> key,
                  std::initializer_list<std::span<const std::byte>> parts) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, in_raw(key), key.size());
  for (auto part : parts) crypto_auth_hmacsha256_update(&state, in_raw(part), part.size());
  SymmetricKey digest;
  crypto_auth_hmacsha256_final(&state, out_raw(digest));
  return digest;
}

/// HKDF of RFC 5869 without an info field, as Noise defines it.
template <std::size_t kOutputs>
std::array<SymmetricKey, kOutputs> hkdf(const SymmetricKey& chaining_key,
                                        std::span<const std::byte> material) {
  const SymmetricKey extracted = hmac(chaining_key, {material});
  std::array<SymmetricKey, kOutputs> outputs;
  for (std::size_t i = 0; i < kOutputs; ++i) {
    const std::byte number{static_cast<unsigned char>(i + 1)};
    const std::span<const std::byte> before =
        i == 0 ? std::span<const std::byte>() : std::span<const std::byte>(outputs[i - 1]);
    outputs[i] = hmac(extracted, {before, std::span(&number, 1)});
  }
  return outputs;
}

SymmetricKey public_key(const SymmetricKey& secret) {
  SymmetricKey key;
  CHECK(crypto_scalarmult_curve25519_base(out_raw(key), in_raw(secret)) == 0);
  return key;
}

SymmetricKey fresh_secret() {
  SymmetricKey secret;
  fill_random(secret);
  return secret;
}

/// Noise's nonce: 32 zero bits, then the counter.
std::array<unsigned char, 12> nonce_of(std::uint64_t counter) {
  std::array<unsigned char, 12> nonce{};
  std::memcpy(nonce.data() + 4, &counter, sizeof counter);
  return nonce;
}

}  // namespace

SymmetricKey key_of_token(std::string_view token) {
  return hmac(text_bytes(kTokenLabel), {text_bytes(token)});
}

SymmetricKey derive_key(const SymmetricKey& key, std::string_view label) {
  return hmac(key, {text_bytes(label)});
}

// ---- MessageCipher

void MessageCipher::encrypt(std::span<const std::byte> associated, std::span<const std::byte> plain,
                            std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  out.resize(begin + plain.size() + kTagBytes);
  const auto nonce = nonce_of(messages_++);
  crypto_aead_chacha20poly1305_ietf_encrypt(out_raw(std::span(out).subspan(begin)), nullptr,
                                            in_raw(plain), plain.size(), in_raw(associated),
                                            associated.size(), nullptr, nonce.data(), in_raw(key_));
}

bool MessageCipher::decrypt(std::span<const std::byte> associated,
                            std::span<const std::byte> sealed, std::span<std::byte> plain) {
  CHECK(sealed.size() == plain.size() + kTagBytes);
  const auto nonce = nonce_of(messages_++);
  return crypto_aead_chacha20poly1305_ietf_decrypt(
             out_raw(plain), nullptr, nullptr, in_raw(sealed), sealed.size(), in_raw(associated),
             associated.size(), nonce.data(), in_raw(key_)) == 0;
}

// ---- NoiseHandshake

NoiseHandshake::NoiseHandshake(Side side, const SymmetricKey& psk,
                               std::span<const std::byte> prologue,
                               std::optional<SymmetricKey> ephemeral)
    : side_(side),
      chaining_key_(sha256({text_bytes(kNoiseName)})),
      hash_(chaining_key_),
      cipher_(SymmetricKey{}),
      secret_(ephemeral ? *ephemeral : fresh_secret()) {
  static_assert(kNoiseName.size() > sizeof(SymmetricKey));
  mix_hash(prologue);
  mix_psk(psk);
}

NoiseHandshake::~NoiseHandshake() {
  sodium_memzero(secret_.data(), secret_.size());
  sodium_memzero(shared_.data(), shared_.size());
  sodium_memzero(chaining_key_.data(), chaining_key_.size());
  sodium_memzero(&cipher_, sizeof cipher_);
}

void NoiseHandshake::mix_hash(std::span<const std::byte> bytes) { hash_ = sha256({hash_, bytes}); }

void NoiseHandshake::mix_key(std::span<const std::byte> material) {
  const auto [chaining_key, key] = hkdf<2>(chaining_key_, material);
  chaining_key_ = chaining_key;
  cipher_ = MessageCipher(key);
}

void NoiseHandshake::mix_psk(const SymmetricKey& psk) {
  const auto [chaining_key, hashed, key] = hkdf<3>(chaining_key_, psk);
  chaining_key_ = chaining_key;
  mix_hash(hashed);
  cipher_ = MessageCipher(key);
}

void NoiseHandshake::encrypt_and_hash(std::span<const std::byte> plain,
                                      std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  cipher_.encrypt(hash_, plain, out);
  mix_hash(std::span(out).subspan(begin));
}

bool NoiseHandshake::decrypt_and_hash(std::span<const std::byte> sealed,
                                      std::span<std::byte> plain) {
  if (!cipher_.decrypt(hash_, sealed, plain)) return false;
  mix_hash(sealed);
  return true;
}

// Fails for a peer's key with which the secret would not depend on ours.
bool NoiseHandshake::agree() {
  return crypto_scalarmult_curve25519(out_raw(shared_), in_raw(secret_), in_raw(peer_)) == 0;
}

void NoiseHandshake::write(std::span<const std::byte> payload, std::vector<std::byte>& out) {
  CHECK(messages_ == (side_ == Side::kInitiator ? 0 : 1));
  const SymmetricKey own = public_key(secret_);
  out.insert(out.end(), own.begin(), own.end());
  mix_hash(own);
  mix_key(own);
  if (side_ == Side::kResponder) mix_key(shared_);
  encrypt_and_hash(payload, out);
  ++messages_;
}

bool NoiseHandshake::read(std::span<const std::byte> message, std::span<std::byte> payload) {
  CHECK(messages_ == (side_ == Side::kInitiator ? 1 : 0));
  CHECK(message.size() == payload.size() + kOverheadBytes);
  std::memcpy(peer_.data(), message.data(), kKeyBytes);
  mix_hash(peer_);
  mix_key(peer_);
  if (side_ == Side::kInitiator) {
    if (!agree()) return false;
    mix_key(shared_);
  }
  if (!decrypt_and_hash(message.subspan(kKeyBytes), payload)) return false;
  // A stranger's message is refused before this, which is the dear part.
  if (side_ == Side::kResponder && !agree()) return false;
  ++messages_;
  return true;
}

SessionKeys NoiseHandshake::split() const {
  CHECK(messages_ == 2);
  const auto [from_initiator, from_responder] = hkdf<2>(chaining_key_, {});
  return {from_initiator, from_responder};
}

}  // namespace runtime
