#include "runtime/transport/noise.h"

#include <gtest/gtest.h>

#include <string>

namespace runtime {
namespace {

using Side = NoiseHandshake::Side;

SymmetricKey filled(unsigned char value) {
  SymmetricKey key;
  key.fill(std::byte{value});
  return key;
}

SymmetricKey counting() {
  SymmetricKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  return key;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::byte b : bytes) {
    text += kDigits[std::to_integer<int>(b) >> 4];
    text += kDigits[std::to_integer<int>(b) & 15];
  }
  return text;
}

struct Both {
  explicit Both(const SymmetricKey& caller_key = counting(),
                const SymmetricKey& callee_key = counting(),
                std::string_view caller_prologue = "prologue of both",
                std::string_view callee_prologue = "prologue of both")
      : caller(Side::kInitiator, caller_key, bytes_of(caller_prologue), filled(0x11)),
        callee(Side::kResponder, callee_key, bytes_of(callee_prologue), filled(0x22)) {}
  NoiseHandshake caller, callee;
};

// From the Python package noiseprotocol 0.3.1, an implementation by others: the same keys.
TEST(Noise, SaysWhatAnotherImplementationSays) {
  Both both;
  std::vector<std::byte> first, second;
  both.caller.write({}, first);
  EXPECT_EQ(hex(first),
            "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13"
            "2515ed672ec61e7d3c642dd54bc50087");
  ASSERT_TRUE(both.callee.read(first, {}));
  const std::byte payload{1};
  both.callee.write(std::span(&payload, 1), second);
  EXPECT_EQ(hex(second),
            "0faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf2678570f20"
            "485c21b578f0bede366ce1ed2ad4ea1a74");
  std::byte heard{};
  ASSERT_TRUE(both.caller.read(second, std::span(&heard, 1)));
  EXPECT_EQ(heard, payload);

  const SessionKeys keys = both.caller.split();
  EXPECT_EQ(hex(keys.from_initiator),
            "db72db7b88aa6a8223bac741154c7881c10c92ab4a4b7a9c36d0f107e18695a4");
  EXPECT_EQ(both.callee.split().from_initiator, keys.from_initiator);
  EXPECT_EQ(both.callee.split().from_responder, keys.from_responder);
  EXPECT_NE(keys.from_initiator, keys.from_responder);
  std::vector<std::byte> hello, world;
  MessageCipher(keys.from_initiator).encrypt({}, bytes_of("hello"), hello);
  MessageCipher(keys.from_responder).encrypt({}, bytes_of("world"), world);
  EXPECT_EQ(hex(hello), "6048e4b822f45aa9e70ddc431cc573e5575f6d0b46");
  EXPECT_EQ(hex(world), "ae254998e39c7de58e1497a3dfe006efd839b80408");
}

TEST(Noise, RefusesAnotherKeyOrPrologue) {
  std::vector<std::byte> first;
  Both other_key(counting(), filled(7));
  other_key.caller.write({}, first);
  EXPECT_FALSE(other_key.callee.read(first, {}));
  first.clear();
  Both other_prologue(counting(), counting(), "to worker 1", "to worker 2");
  other_prologue.caller.write({}, first);
  EXPECT_FALSE(other_prologue.callee.read(first, {}));
}

TEST(Noise, RefusesMessagesThatWereChanged) {
  for (std::size_t at = 0; at < NoiseHandshake::kOverheadBytes; ++at) {
    Both both;
    std::vector<std::byte> first;
    both.caller.write({}, first);
    first[at] ^= std::byte{1};
    EXPECT_FALSE(both.callee.read(first, {})) << at;
  }
  for (std::size_t at = 0; at < NoiseHandshake::kOverheadBytes + 1; ++at) {
    Both both;
    std::vector<std::byte> first, second;
    both.caller.write({}, first);
    ASSERT_TRUE(both.callee.read(first, {}));
    std::byte payload{};
    both.callee.write(std::span(&payload, 1), second);
    second[at] ^= std::byte{0x40};
    EXPECT_FALSE(both.caller.read(second, std::span(&payload, 1))) << at;
  }
}

// With such a key the secret would be zero, whatever the other side's key.
TEST(Noise, RefusesAKeyOfLowOrder) {
  Both both;
  std::vector<std::byte> first;
  both.caller.write({}, first);
  const std::vector<std::byte> zero_key(NoiseHandshake::kOverheadBytes);
  EXPECT_FALSE(both.caller.read(zero_key, {}));
}

TEST(Noise, IsFreshEachTime) {
  std::vector<std::byte> one, two;
  NoiseHandshake(Side::kInitiator, counting(), {}).write({}, one);
  NoiseHandshake(Side::kInitiator, counting(), {}).write({}, two);
  EXPECT_NE(one, two);
}

TEST(Noise, TokensOfAnyLengthAreKeys) {
  EXPECT_EQ(key_of_token("secret"), key_of_token("secret"));
  EXPECT_NE(key_of_token("secret"), key_of_token("secret "));
  EXPECT_NE(key_of_token(""), key_of_token(std::string(1, '\0')));
  EXPECT_NE(key_of_token(std::string(1000, 'a')), key_of_token(std::string(1001, 'a')));
}

}  // namespace
}  // namespace runtime
