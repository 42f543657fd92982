#include "runtime/transport/buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace runtime {
namespace {

TEST(Buffer, PartsKeepTheWholeAlive) {
  auto owner = std::make_shared<std::string>("0123456789");
  const std::weak_ptr<std::string> watched = owner;
  const std::span<const char> text(*owner);
  Buffer part = Buffer(std::as_bytes(text), std::move(owner)).slice(2, 5).slice(1, 3);
  EXPECT_EQ(part.text(), "345");
  EXPECT_FALSE(watched.expired());
  part = {};
  EXPECT_TRUE(watched.expired());
}

TEST(Buffer, BlocksAreAlignedByTheirSize) {
  for (const std::size_t size : {0, 1, 15, 17, 4095, 4096, 4097, 100000}) {
    std::byte* writable = nullptr;
    const Buffer block = Buffer::allocate(size, &writable);
    ASSERT_EQ(block.size(), size);
    EXPECT_EQ(block.data(), writable);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(writable) % (size < 4096 ? 16 : 64), 0u) << size;
    for (std::size_t i = 0; i < size; ++i) writable[i] = std::byte{7};  // for sanitizers
  }
}

TEST(Buffer, WhatIsAdoptedIsNotCopied) {
  std::vector<std::uint32_t> numbers{1, 2, 3};
  const void* const data = numbers.data();
  const Buffer buffer = Buffer::adopt(std::move(numbers));
  EXPECT_EQ(buffer.data(), data);
  EXPECT_EQ(buffer.size(), 12u);
  std::string text = "short";
  const Buffer copy = Buffer::copy_of(text);
  text[0] = 'X';
  EXPECT_EQ(copy.text(), "short");
}

TEST(Payload, OnePieceIsItselfAndSeveralAreOneAfterAnother) {
  Payload payload;
  EXPECT_TRUE(payload.flatten().empty());
  const Buffer one = Buffer::copy_of("one");
  payload.add(one);
  EXPECT_EQ(payload.flatten().data(), one.data());
  payload.add(Buffer());
  payload.add(Buffer::copy_of("two"));
  EXPECT_EQ(payload.size(), 6u);
  EXPECT_EQ(payload.flatten().text(), "onetwo");
}

}  // namespace
}  // namespace runtime
