#include "runtime/object/object_wire.h"

#include <gtest/gtest.h>

namespace runtime::object_wire {
namespace {

ObjectLocation some_location() {
  return {ObjectId::random(), NodeId::random(), "10.0.0.1:7000", 0, 17, 4096 + 64, 123456789};
}

template <class Kind>
Kind through(const Request& request) {
  auto back = decode_request(encode_request(request));
  EXPECT_TRUE(back.ok()) << back.status().to_string();
  return std::get<Kind>(*back);
}

TEST(ObjectWire, RoundTripsRequests) {
  through<Open>(Open{});
  EXPECT_EQ(through<Lease>(Lease{77}).bytes, 77u);
  EXPECT_EQ(through<GiveBack>(GiveBack{{1, 2, 3}}).extents, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(through<Pin>(Pin{5}).extent, 5u);
  EXPECT_EQ(through<Unpin>(Unpin{{9, 9}}).extents, (std::vector<std::uint64_t>{9, 9}));
  ObjectLocation location = some_location();
  EXPECT_EQ(through<Fetch>(Fetch{location}).location, location);
  Read read = through<Read>(Read{location, 10, 20});
  EXPECT_EQ(read.location, location);
  EXPECT_EQ(read.from, 10u);
  EXPECT_EQ(read.length, 20u);
}

TEST(ObjectWire, RoundTripsReplies) {
  StoreInfo info{NodeId::random(), "h:1", 0, 1 << 20, 4096};
  auto back = decode_reply(encode_reply(info));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(std::get<StoreInfo>(*back).node, info.node);
  EXPECT_EQ(std::get<StoreInfo>(*back).slab_bytes, 4096u);
  auto extent = decode_reply(encode_reply(Extent{3, {4096, 8192}}));
  ASSERT_TRUE(extent.ok());
  EXPECT_EQ(std::get<Extent>(*extent).range, (ByteRange{4096, 8192}));
  EXPECT_EQ(decode_reply(encode_failure(object_lost("x"))).status(), object_lost("x"));
}

TEST(ObjectWire, RefusesWhatIsMalformed) {
  EXPECT_EQ(decode_request(Buffer()).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(decode_request(Buffer::copy_of(std::string(24, '\xee'))).status().code(), ErrorCode::kInvalidArgument);
  ObjectLocation crooked = some_location();
  crooked.offset = 4097;
  EXPECT_EQ(decode_request(encode_request(Fetch{crooked})).status().code(), ErrorCode::kInvalidArgument);
  Buffer good = encode_request(Fetch{some_location()});
  for (std::size_t size = 0; size < good.size(); size += 8) EXPECT_FALSE(decode_request(good.slice(0, size)).ok()) << size;
}

}  // namespace
}  // namespace runtime::object_wire
