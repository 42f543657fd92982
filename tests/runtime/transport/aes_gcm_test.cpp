#include "runtime/transport/aes_gcm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace runtime {
namespace {

using Bytes = std::vector<std::byte>;
using Make = std::unique_ptr<AesGcm> (*)(AesGcm::Use);

Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

struct SealedMessage {
  SymmetricKey key;
  Bytes nonce, associated, text;
};

std::span<const std::byte, AesGcm::kNonceBytes> nonce_of(const SealedMessage& message) {
  return std::span<const std::byte, AesGcm::kNonceBytes>(message.nonce);
}

/// The encrypted text, then the tag; given in pieces of at most this many bytes.
Bytes seal(AesGcm& cipher, const SealedMessage& message, std::size_t piece) {
  cipher.set_key(message.key);
  cipher.begin(nonce_of(message), message.associated);
  Bytes sealed(message.text.size() + AesGcm::kTagBytes);
  const std::span text(message.text);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::size_t step = std::min(piece, text.size() - at);
    cipher.update(text.subspan(at, step), sealed.data() + at);
  }
  cipher.write_tag(std::span(sealed).last<AesGcm::kTagBytes>());
  return sealed;
}

/// In place.
bool open(AesGcm& cipher, const SealedMessage& message, Bytes& sealed, std::size_t piece) {
  cipher.set_key(message.key);
  cipher.begin(nonce_of(message), message.associated);
  const std::span text = std::span(sealed).first(sealed.size() - AesGcm::kTagBytes);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::size_t step = std::min(piece, text.size() - at);
    cipher.update(text.subspan(at, step), text.data() + at);
  }
  return cipher.check_tag(std::span(sealed).last<AesGcm::kTagBytes>());
}

class AesGcmTest : public ::testing::TestWithParam<Make> {
 protected:
  void SetUp() override {
    if (!GetParam()(AesGcm::Use::kSeal)) GTEST_SKIP() << "this machine has no such library";
  }
};

// Test case 16 of "The Galois/Counter Mode of Operation (GCM)" (McGrew, Viega).
TEST_P(AesGcmTest, SaysWhatItsSpecificationSays) {
  SealedMessage message;
  const Bytes key = from_hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  std::memcpy(message.key.data(), key.data(), key.size());
  message.nonce = from_hex("cafebabefacedbaddecaf888");
  message.associated = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  message.text = from_hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6"
      "b525"
      "b16aedf5aa0de657ba637b39");
  const Bytes expected = from_hex(
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b105682"
      "8838"
      "c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b");
  auto sealer = GetParam()(AesGcm::Use::kSeal), opener = GetParam()(AesGcm::Use::kOpen);
  Bytes sealed = seal(*sealer, message, 60);
  EXPECT_EQ(sealed, expected);
  ASSERT_TRUE(open(*opener, message, sealed, 60));
  sealed.resize(message.text.size());
  EXPECT_EQ(sealed, message.text);
}

// Of any size, cut anywhere, one message after another.
TEST_P(AesGcmTest, AgreesWithTheOtherLibrary) {
  std::mt19937 random(7);
  auto sealer = GetParam()(AesGcm::Use::kSeal), opener = GetParam()(AesGcm::Use::kOpen);
  auto other = make_openssl_aes_gcm(AesGcm::Use::kSeal);
  for (int i = 0; i < 300; ++i) {
    SealedMessage message;
    const auto fill = [&](auto& bytes) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    };
    message.nonce.resize(AesGcm::kNonceBytes);
    message.associated.resize(random() % 32);
    message.text.resize(i % 3 == 0 ? random() % 65'537 : random() % 300);
    fill(message.key), fill(message.nonce), fill(message.associated), fill(message.text);
    const std::size_t piece = 1 + random() % 5000;
    Bytes sealed = seal(*sealer, message, piece);
    ASSERT_EQ(sealed, seal(*other, message, 65'536)) << message.text.size() << " by " << piece;
    ASSERT_TRUE(open(*opener, message, sealed, 1 + random() % 5000));
    ASSERT_EQ(std::memcmp(sealed.data(), message.text.data(), message.text.size()), 0);
  }
}

TEST_P(AesGcmTest, RefusesWhatWasChanged) {
  auto sealer = GetParam()(AesGcm::Use::kSeal), opener = GetParam()(AesGcm::Use::kOpen);
  SealedMessage message{{}, Bytes(AesGcm::kNonceBytes), Bytes(4), Bytes(20, std::byte{1})};
  const Bytes sealed = seal(*sealer, message, 20);
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    Bytes changed = sealed;
    changed[at] ^= std::byte{0x10};
    EXPECT_FALSE(open(*opener, message, changed, 20)) << at;
  }
  Bytes whole = sealed;
  message.associated[0] = std::byte{1};
  EXPECT_FALSE(open(*opener, message, whole, 20));
  message.associated[0] = std::byte{0};
  whole = sealed;
  EXPECT_TRUE(open(*opener, message, whole, 20)) << "what came before does not matter";
}

INSTANTIATE_TEST_SUITE_P(Libraries, AesGcmTest,
                         ::testing::Values(&make_openssl_aes_gcm, &make_ipsec_mb_aes_gcm),
                         [](const auto& made) { return made.index == 0 ? "OpenSsl" : "IpsecMb"; });

}  // namespace
}  // namespace runtime
