// AES-256-GCM (NIST SP 800-38D) by whichever library is fastest on this machine. Private to
// runtime/transport.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "runtime/transport/noise.h"

namespace runtime {

/// One direction of it: messages under a key, one after another, each with a nonce that the key has
/// not seen.
class AesGcm {
 public:
  enum class Use { kSeal, kOpen };
  static constexpr std::size_t kNonceBytes = 12;
  static constexpr std::size_t kTagBytes = 16;
  using Tag = std::span<std::byte, kTagBytes>;

  AesGcm() = default;
  AesGcm(const AesGcm&) = delete;
  AesGcm& operator=(const AesGcm&) = delete;
  virtual ~AesGcm() = default;

  virtual void set_key(const SymmetricKey& key) = 0;
  /// `associated` is authenticated, not encrypted.
  virtual void begin(std::span<const std::byte, kNonceBytes> nonce,
                     std::span<const std::byte> associated) = 0;
  /// The next piece of the message; `to` has its size, and may be `from`.
  virtual void update(std::span<const std::byte> from, std::byte* to) = 0;
  /// The end of a message that was sealed.
  virtual void write_tag(Tag tag) = 0;
  /// The end of a message that was opened. False: it is not what was sealed; what was written is
  /// garbage.
  [[nodiscard]] virtual bool check_tag(std::span<const std::byte, kTagBytes> tag) = 0;
};

/// Of OpenSSL's libcrypto.
std::unique_ptr<AesGcm> make_openssl_aes_gcm(AesGcm::Use use);
/// Of Intel's Multi-Buffer Crypto Library, which uses AVX-512 where the processor has it (four
/// times OpenSSL 3.0's rate). Null where the library or AES instructions are missing.
std::unique_ptr<AesGcm> make_ipsec_mb_aes_gcm(AesGcm::Use use);
/// The second if there is one, else the first.
std::unique_ptr<AesGcm> make_aes_gcm(AesGcm::Use use);

}  // namespace runtime
