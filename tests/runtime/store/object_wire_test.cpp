#include "runtime/store/object_wire.h"

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
  EXPECT_EQ(through<Surrender>(Surrender{8}).bytes, 8u);
  const std::vector<ObjectLocation> locations{location, some_location()};
  EXPECT_EQ(through<Keep>(Keep{locations}).locations, locations);
  EXPECT_EQ(through<Release>(Release{locations}).locations, locations);
  EXPECT_EQ(through<Hold>(Hold{locations}).locations, locations);
  EXPECT_EQ(through<Unhold>(Unhold{locations}).locations, locations);
  through<Report>(Report{});
  Source source = through<Source>(Source{location, "a:1", "b:2"});
  EXPECT_EQ(source.location, location);
  EXPECT_EQ(source.endpoint, "a:1");
  EXPECT_EQ(source.failed, "b:2");
  EXPECT_EQ(through<Ended>(Ended{{location.id}}).objects, std::vector<ObjectId>{location.id});
}

TEST(ObjectWire, ARequestTravelsInAFrameOfItsKind) {
  const Message message = request_message(Lease{.bytes = 77, .wait_ms = 5});
  EXPECT_EQ(message.kind, FrameKind::kObject);
  const auto request = decode_request(message.meta);
  ASSERT_TRUE(request.ok()) << request.status().to_string();
  EXPECT_EQ(std::get<Lease>(*request).wait_ms, 5u);
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
  ObjectLocation location = some_location();
  auto report = decode_reply(encode_reply(ProcessReport{{{location, true, 1, 2, 3, 4, 5}}, 6}));
  ASSERT_TRUE(report.ok());
  const auto& said = std::get<ProcessReport>(*report);
  EXPECT_EQ(said.inline_objects, 6u);
  ASSERT_EQ(said.objects.size(), 1u);
  EXPECT_EQ(said.objects[0].location, location);
  EXPECT_TRUE(said.objects[0].owned);
  EXPECT_EQ(said.objects[0].in_flight, 3u);
  EXPECT_EQ(said.objects[0].age_ms, 5u);
  auto found = decode_reply(encode_reply(SourceFound{"c:3"}));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(std::get<SourceFound>(*found).endpoint, "c:3");
  EXPECT_EQ(decode_reply(encode_failure(object_lost("x"))).status(), object_lost("x"));
}

TEST(ObjectWire, RefusesWhatIsMalformed) {
  EXPECT_EQ(decode_request(Buffer()).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(decode_request(Buffer::copy_of(std::string(24, '\xee'))).status().code(),
            ErrorCode::kInvalidArgument);
  ObjectLocation crooked = some_location();
  crooked.offset = 4097;
  EXPECT_EQ(decode_request(encode_request(Fetch{crooked})).status().code(),
            ErrorCode::kInvalidArgument);
  Buffer good = encode_request(Fetch{some_location()});
  for (std::size_t size = 0; size < good.size(); size += 8)
    EXPECT_FALSE(decode_request(good.slice(0, size)).ok()) << size;
}

}  // namespace
}  // namespace runtime::object_wire
