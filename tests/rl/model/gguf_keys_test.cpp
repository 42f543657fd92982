#include "rl/model/gguf_keys.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/rl/model/fake_gguf.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using testing::FakeGguf;

runtime::Status checked(const FakeGguf& file) { return check_gguf_keys(file, "llama.", 64, 4096); }

TEST(GgufKeys, AnOptionOfZerosIsOff) {
  FakeGguf off, on;
  off.set_bytes("llama.some.layers", std::string(3, '\0'));
  off.set_bool("llama.some.flag", false);
  off.set_integer("llama.some.count", 0);
  EXPECT_TRUE(checked(off).ok()) << checked(off).to_string();
  on.set_bytes("llama.some.layers", std::string("\0\1\0", 3));
  support::expect_failure(checked(on), ErrorCode::kUnimplemented,
                          {"m.gguf: llama.some.layers = a list is not supported"});
}

TEST(GgufKeys, AWindowOfAllPositionsIsNone) {
  FakeGguf all, fewer;
  all.set_integer("llama.attention.sliding_window", 4096);
  EXPECT_TRUE(checked(all).ok()) << checked(all).to_string();
  fewer.set_integer("llama.attention.sliding_window", 4095);
  support::expect_failure(checked(fewer), ErrorCode::kUnimplemented,
                          {"llama.attention.sliding_window = 4095"});
}

TEST(GgufKeys, TheScaleOfAttentionIsThatOfTheHeads) {
  FakeGguf usual, other;
  usual.set_number("llama.attention.scale", 0.125);
  EXPECT_TRUE(checked(usual).ok()) << checked(usual).to_string();
  other.set_number("llama.attention.scale", 0.25);
  support::expect_failure(checked(other), ErrorCode::kUnimplemented, {"llama.attention.scale"});
}

TEST(GgufKeys, OnlyTheModelsOwnKeysAreJudged) {
  FakeGguf file;
  file.set_text("qwen2.some.option", "x");
  file.set_text("general.some.option", "x");
  file.set_text("llama.tensor_data_layout", "x");
  EXPECT_TRUE(checked(file).ok()) << checked(file).to_string();
  file.set_text("llama.some.option", std::string(500, 'x'));
  support::expect_failure(checked(file), ErrorCode::kUnimplemented, {"llama.some.option = \"xx"});
  EXPECT_LT(checked(file).message().size(), 300u) << "its beginning is enough";
}

}  // namespace
}  // namespace rl
