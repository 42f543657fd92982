#include "runtime/control/token_strength.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace runtime {
namespace {

std::string random_text(std::string_view alphabet, std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += alphabet[random() % alphabet.size()];
  return text;
}

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kBase62 =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

TEST(TokenStrength, WhatIsMadeAtRandomIsStrong) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    EXPECT_GE(estimated_bits(random_text(kHex, 32, seed)), kTokenBitsMin) << seed;
    EXPECT_GE(estimated_bits(random_text(kHex, 64, seed)), 2 * kTokenBitsMin) << seed;
    EXPECT_GE(estimated_bits(random_text(kBase62, 43, seed)), kTokenBitsMin) << seed;
  }
}

TEST(TokenStrength, WhatPeopleMakeUpIsWeak) {
  for (const char* token : {"",
                            "guess",
                            "aaaaaaaaaaaaaaaa",
                            "0123456789abcdef0123",
                            "1234567890123456789012",
                            "passwordpassword1",
                            "Password1234567890!",
                            "correct horse battery staple",
                            "abababababababababababababababab",
                            "starlingstarlingstarlingstarling",
                            "qwertyuiopasdfghjkl",
                            "my-cluster-token-2026",
                            "to be or not to be that is the",
                            "my-gpu-box-is-the-best-of-all",
                            "1qaz2wsx3edc4rfv5tgb",
                            "test-gpu-lab-2025-token-key!",
                            "P4ssw0rd!P4ssw0rd2024!",
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                            "deadbeefdeadbeefdeadbeefdeadbeef",
                            "2026-11-27T07:22:43.000Z-node-1",
                            "7777777777777777777777777777777777777777777777777777"})
    EXPECT_LT(estimated_bits(token), kTokenBitsMin) << token;
}

TEST(TokenStrength, ALongSentenceIsEnough) {
  EXPECT_GE(estimated_bits("the quick brown fox jumps over 13 lazy dogs, and then sleeps "
                           "until Thursday noon"),
            kTokenBitsMin);
}

// Never more than all characters at random would have.
TEST(TokenStrength, IsNotMoreThanItsCharacters) {
  for (unsigned seed = 0; seed < 100; ++seed)
    EXPECT_LE(estimated_bits(random_text(kHex, 64, seed)), 256.0);
}

}  // namespace
}  // namespace runtime
