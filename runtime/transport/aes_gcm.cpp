#include "runtime/transport/aes_gcm.h"

#include <openssl/evp.h>

#include "runtime/core/check.h"

namespace runtime {

namespace {

unsigned char* octets(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* octets(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

class OpensslAesGcm final : public AesGcm {
 public:
  explicit OpensslAesGcm(Use use) {
    // No configuration file of OpenSSL's decides what this process does.
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    context_.reset(EVP_CIPHER_CTX_new());
    CHECK(context_ != nullptr);
    CHECK(EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr, nullptr, nullptr,
                            use == Use::kSeal ? 1 : 0) == 1);
  }

  void set_key(const SymmetricKey& key) override {
    CHECK(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, octets(key.data()), nullptr, -1) ==
          1);
  }
  void begin(std::span<const std::byte, kNonceBytes> nonce,
             std::span<const std::byte> associated) override {
    CHECK(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, octets(nonce.data()), -1) ==
          1);
    int written = 0;
    CHECK(EVP_CipherUpdate(context_.get(), nullptr, &written, octets(associated.data()),
                           static_cast<int>(associated.size())) == 1);
  }
  void update(std::span<const std::byte> from, std::byte* to) override {
    int written = 0;
    CHECK(EVP_CipherUpdate(context_.get(), octets(to), &written, octets(from.data()),
                           static_cast<int>(from.size())) == 1);
  }
  void write_tag(Tag tag) override {
    unsigned char none[16];
    int written = 0;
    CHECK(EVP_CipherFinal_ex(context_.get(), none, &written) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1);
  }
  bool check_tag(std::span<const std::byte, kTagBytes> tag) override {
    CHECK(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes,
                              const_cast<std::byte*>(tag.data())) == 1);
    unsigned char none[16];
    int written = 0;
    return EVP_CipherFinal_ex(context_.get(), none, &written) == 1;
  }

 private:
  struct Free {
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };
  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
};

}  // namespace

std::unique_ptr<AesGcm> make_openssl_aes_gcm(AesGcm::Use use) {
  return std::make_unique<OpensslAesGcm>(use);
}

std::unique_ptr<AesGcm> make_aes_gcm(AesGcm::Use use) {
  auto fast = make_ipsec_mb_aes_gcm(use);
  return fast ? std::move(fast) : make_openssl_aes_gcm(use);
}

}  // namespace runtime
