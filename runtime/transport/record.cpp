#include "runtime/transport/record.h"

#include <openssl/evp.h>
#include <sodium/utils.h>

#include <array>
#include <cstring>

#include "runtime/core/check.h"

namespace runtime {

namespace {

constexpr std::string_view kNextKeyLabel = "starling next record key";

unsigned char* octets(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* octets(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

}  // namespace

void RecordCipher::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

RecordCipher::RecordCipher(const SymmetricKey& key, Use use, std::uint64_t records_per_key)
    : key_(key), use_(use), records_per_key_(records_per_key) {
  // No configuration file of OpenSSL's decides what this process does.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  context_.reset(EVP_CIPHER_CTX_new());
  CHECK(context_ != nullptr);
  CHECK(EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr, octets(key_.data()), nullptr,
                          use == Use::kSeal ? 1 : 0) == 1);
}

RecordCipher::~RecordCipher() { sodium_memzero(key_.data(), key_.size()); }

void RecordCipher::begin_record(std::span<const std::byte, kRecordHeaderBytes> header) {
  if (records_ == records_per_key_) {
    key_ = derive_key(key_, kNextKeyLabel);
    records_ = 0;
    CHECK(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, octets(key_.data()), nullptr, -1) ==
          1);
  }
  std::array<unsigned char, 12> nonce{};
  std::memcpy(nonce.data(), &records_, sizeof records_);
  ++records_;
  CHECK(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data(), -1) == 1);
  int written = 0;
  CHECK(EVP_CipherUpdate(context_.get(), nullptr, &written, octets(header.data()),
                         static_cast<int>(header.size())) == 1);
}

std::size_t RecordCipher::seal(std::span<const iovec> text, std::span<std::byte> out) {
  std::size_t size = 0;
  for (const iovec& piece : text) size += piece.iov_len;
  CHECK(use_ == Use::kSeal && size > 0 && size <= kRecordTextMax);
  CHECK(out.size() >= size + kRecordOverheadBytes);
  std::byte* at = out.data();
  const auto stated = static_cast<std::uint32_t>(size);
  std::memcpy(at, &stated, sizeof stated);
  begin_record(std::span<const std::byte, kRecordHeaderBytes>(at, kRecordHeaderBytes));
  at += kRecordHeaderBytes;
  int written = 0;
  for (const iovec& piece : text) {
    CHECK(EVP_CipherUpdate(context_.get(), octets(at), &written,
                           static_cast<const unsigned char*>(piece.iov_base),
                           static_cast<int>(piece.iov_len)) == 1);
    at += piece.iov_len;
  }
  CHECK(EVP_CipherFinal_ex(context_.get(), octets(at), &written) == 1);
  CHECK(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kRecordTagBytes, at) == 1);
  return size + kRecordOverheadBytes;
}

Result<std::size_t> RecordCipher::text_bytes(
    std::span<const std::byte, kRecordHeaderBytes> header) {
  std::uint32_t size = 0;
  std::memcpy(&size, header.data(), sizeof size);
  if (size == 0 || size > kRecordTextMax)
    return invalid_argument("malformed record: a text of " + std::to_string(size) + " bytes");
  return std::size_t{size};
}

bool RecordCipher::open(std::span<const std::byte> record, std::span<const iovec> text) {
  CHECK(use_ == Use::kOpen && record.size() > kRecordOverheadBytes);
  begin_record(record.first<kRecordHeaderBytes>());
  record = record.subspan(kRecordHeaderBytes);
  int written = 0;
  for (const iovec& piece : text) {
    CHECK(EVP_CipherUpdate(context_.get(), static_cast<unsigned char*>(piece.iov_base), &written,
                           octets(record.data()), static_cast<int>(piece.iov_len)) == 1);
    record = record.subspan(piece.iov_len);
  }
  CHECK(record.size() == kRecordTagBytes);
  CHECK(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kRecordTagBytes,
                            const_cast<std::byte*>(record.data())) == 1);
  unsigned char none[16];
  return EVP_CipherFinal_ex(context_.get(), none, &written) == 1;
}

}  // namespace runtime
