#include "runtime/core/ids.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace runtime {
namespace {

TEST(Id, RoundTripsHexAndBytes) {
  ActorId id = ActorId::random();
  EXPECT_EQ(id.hex().size(), 32u);
  EXPECT_EQ(id.short_hex(), id.hex().substr(0, 8));
  auto back = ActorId::from_hex(id.hex());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, id);
  auto raw = ActorId::from_bytes(id.bytes);
  ASSERT_TRUE(raw.ok());
  EXPECT_EQ(*raw, id);
  EXPECT_EQ(*ActorId::from_hex("00112233445566778899AABBCCDDEEFF"),
            *ActorId::from_hex("00112233445566778899aabbccddeeff"));
}

TEST(Id, RefusesOtherText) {
  for (const char* text :
       {"", "0", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0",
        "0123456789abcdef0123456789abcdeg"}) {
    EXPECT_EQ(NodeId::from_hex(text).status().code(), ErrorCode::kInvalidArgument) << text;
  }
  std::array<std::uint8_t, 15> short_bytes{};
  EXPECT_FALSE(NodeId::from_bytes(short_bytes).ok());
}

TEST(Id, IsNoneUntilGiven) {
  EXPECT_TRUE(ObjectId().is_none());
  EXPECT_FALSE(ObjectId::random().is_none());
}

TEST(Id, IsUniqueAndHashable) {
  std::unordered_set<WorkerId> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(WorkerId::random());
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace runtime
