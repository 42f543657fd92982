#include "runtime/transport/record.h"

#include <sodium/utils.h>

#include <array>
#include <cstring>
#include <utility>

#include "runtime/core/check.h"

namespace runtime {

namespace {

constexpr std::string_view kNextKeyLabel = "starling next record key";

std::span<const std::byte> bytes_of(const iovec& piece) {
  return {static_cast<const std::byte*>(piece.iov_base), piece.iov_len};
}

}  // namespace

RecordCipher::RecordCipher(const SymmetricKey& key, Use use, std::uint64_t records_per_key,
                           std::unique_ptr<AesGcm> cipher)
    : key_(key),
      use_(use),
      records_per_key_(records_per_key),
      cipher_(cipher ? std::move(cipher) : make_aes_gcm(use)) {
  cipher_->set_key(key_);
}

RecordCipher::~RecordCipher() { sodium_memzero(key_.data(), key_.size()); }

void RecordCipher::begin_record(std::span<const std::byte, kRecordHeaderBytes> header) {
  if (records_ == records_per_key_) {
    key_ = derive_key(key_, kNextKeyLabel);
    records_ = 0;
    cipher_->set_key(key_);
  }
  std::array<std::byte, AesGcm::kNonceBytes> nonce{};
  std::memcpy(nonce.data(), &records_, sizeof records_);
  ++records_;
  cipher_->begin(nonce, header);
}

std::size_t RecordCipher::seal(std::span<const iovec> text, std::span<std::byte> out) {
  std::size_t size = 0;
  for (const iovec& piece : text) size += piece.iov_len;
  CHECK(use_ == Use::kSeal && size > 0 && size <= kRecordTextMax);
  CHECK(out.size() >= size + kRecordOverheadBytes);
  const auto stated = static_cast<std::uint32_t>(size);
  std::memcpy(out.data(), &stated, sizeof stated);
  begin_record(out.first<kRecordHeaderBytes>());
  out = out.subspan(kRecordHeaderBytes);
  for (const iovec& piece : text) {
    cipher_->update(bytes_of(piece), out.data());
    out = out.subspan(piece.iov_len);
  }
  cipher_->write_tag(out.first<kRecordTagBytes>());
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
  for (const iovec& piece : text) {
    cipher_->update(record.first(piece.iov_len), static_cast<std::byte*>(piece.iov_base));
    record = record.subspan(piece.iov_len);
  }
  CHECK(record.size() == kRecordTagBytes);
  return cipher_->check_tag(record.first<kRecordTagBytes>());
}

}  // namespace runtime
