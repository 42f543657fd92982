#include "runtime/transport/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "runtime/transport/frame_reader.h"
#include "runtime/transport/frame_writer.h"

namespace runtime {
namespace {

struct Collect final : FrameSink {
  void on_frame(Message message) override { messages.push_back(std::move(message)); }
  PayloadTarget payload_target(const FrameHeader&) override { return target; }
  std::vector<Message> messages;
  PayloadTarget target;
};

Message made(std::uint64_t id, std::size_t meta_words, std::size_t payload_bytes) {
  Message message;
  message.kind = FrameKind::kCall;
  message.id = id;
  message.meta = Buffer::adopt(std::vector<std::uint64_t>(meta_words, id));
  std::vector<std::byte> payload(payload_bytes);
  for (std::size_t i = 0; i < payload_bytes; ++i) payload[i] = static_cast<std::byte>(id + i / 3);
  message.payload = Buffer::adopt(std::move(payload));
  return message;
}

std::vector<std::byte> drain(FrameWriter& writer, std::mt19937& rng) {
  std::vector<std::byte> wire;
  while (!writer.empty()) {
    FrameWriter::Batch batch;
    writer.gather(batch);
    std::size_t total = 0;
    for (std::size_t i = 0; i < batch.count; ++i) total += batch.pieces[i].iov_len;
    std::size_t take = 1 + rng() % total, left = take;  // partial sends, as sockets do them
    for (std::size_t i = 0; i < batch.count && left > 0; ++i) {
      std::size_t step = std::min(left, batch.pieces[i].iov_len);
      auto* data = static_cast<const std::byte*>(batch.pieces[i].iov_base);
      wire.insert(wire.end(), data, data + step);
      left -= step;
    }
    writer.consume(take);
  }
  return wire;
}

Status feed(FrameReader& reader, std::span<const std::byte> wire, std::size_t chunk_max,
            std::mt19937& rng, FrameSink& sink) {
  while (!wire.empty()) {
    std::size_t count = std::min<std::size_t>(wire.size(), 1 + rng() % chunk_max), left = count;
    std::size_t room = 0, at = 0;
    auto pieces = reader.prepare();
    for (const iovec& piece : pieces) room += piece.iov_len;
    count = left = std::min(count, room);
    for (const iovec& piece : pieces) {
      std::size_t step = std::min(left, piece.iov_len);
      std::memcpy(piece.iov_base, wire.data() + at, step);
      at += step;
      left -= step;
    }
    if (Status status = reader.commit(count, sink); !status.ok()) return status;
    wire = wire.subspan(count);
  }
  return {};
}

TEST(FrameHeader, RoundTrips) {
  FrameHeader header{
      .meta_bytes = 16, .kind = 3, .fd_count = 2, .id = 0x1122334455667788, .payload_bytes = 77};
  std::array<std::byte, FrameHeader::kBytes> raw;
  header.encode(raw);
  // The layout is fixed for all releases.
  const unsigned char golden[] = {16,   0,    0,    0,    3,  0, 2, 0, 0x88, 0x77, 0x66, 0x55,
                                  0x44, 0x33, 0x22, 0x11, 77, 0, 0, 0, 0,    0,    0,    0};
  EXPECT_EQ(std::memcmp(raw.data(), golden, sizeof golden), 0);
  auto back = FrameHeader::decode(raw, 1000, 1000);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->id, header.id);
  EXPECT_EQ(back->payload_bytes, 77u);
}

TEST(FrameHeader, RefusesWhatIsOutOfBounds) {
  auto decode = [](FrameHeader header, int flags = 0) {
    std::array<std::byte, FrameHeader::kBytes> raw;
    header.encode(raw);
    raw[7] = static_cast<std::byte>(flags);
    return FrameHeader::decode(raw, 64, 1000).ok();
  };
  EXPECT_TRUE(decode({.meta_bytes = 64, .kind = 13, .fd_count = 16, .payload_bytes = 1000}));
  EXPECT_FALSE(decode({.meta_bytes = 72, .kind = 1}));
  EXPECT_FALSE(decode({.meta_bytes = 63, .kind = 1}));
  EXPECT_FALSE(decode({.kind = 0}));
  EXPECT_FALSE(decode({.kind = 14}));
  EXPECT_FALSE(decode({.kind = 1, .fd_count = 17}));
  EXPECT_FALSE(decode({.kind = 1, .payload_bytes = 1001}));
  EXPECT_FALSE(decode({.kind = 1}, 1));
}

TEST(Frames, SurviveAnyChunking) {
  std::mt19937 rng(1);
  for (int round = 0; round < 60; ++round) {
    FrameWriter writer;
    std::vector<Message> sent;
    std::size_t expected = 0;
    for (int i = 0; i < 40; ++i) {
      std::size_t payload = rng() % 4 == 0 ? rng() % 200000 : rng() % 300;
      std::size_t words = rng() % 20 == 0 ? rng() % 10000 : rng() % 20;
      sent.push_back(made(rng(), words, payload));
      Message copy;
      copy.kind = sent.back().kind;
      copy.id = sent.back().id;
      copy.meta = sent.back().meta;
      copy.payload = sent.back().payload;
      expected += FrameWriter::wire_bytes(copy);
      writer.append(std::move(copy));
    }
    EXPECT_EQ(writer.bytes(), expected);
    std::vector<std::byte> wire = drain(writer, rng);
    ASSERT_EQ(wire.size(), expected);
    FrameReader reader(1 << 20, 1 << 20);
    Collect sink;
    std::size_t chunk_max = round % 3 == 0 ? 50 : round % 3 == 1 ? 5000 : 300000;
    ASSERT_TRUE(feed(reader, wire, chunk_max, rng, sink).ok());
    ASSERT_EQ(sink.messages.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(sink.messages[i].id, sent[i].id);
      EXPECT_EQ(sink.messages[i].meta.text(), sent[i].meta.text());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(sink.messages[i].meta.data()) % 8, 0u)
          << "decoded where it lies";
      EXPECT_EQ(sink.messages[i].payload.first().text(), sent[i].payload.first().text());
    }
    EXPECT_FALSE(reader.mid_frame());
  }
}

TEST(Frames, SliceSmallOnesOutOfOneBlock) {
  FrameWriter writer;
  for (int i = 0; i < 10; ++i) writer.append(made(1, 4, 100));
  std::mt19937 rng(1);
  auto wire = drain(writer, rng);
  FrameReader reader(1 << 20, 1 << 20);
  Collect sink;
  ASSERT_TRUE(feed(reader, wire, 1 << 20, rng, sink).ok());
  ASSERT_EQ(sink.messages.size(), 10u);
  EXPECT_EQ(sink.messages[0].meta.owner(), sink.messages[9].payload.first().owner());
}

TEST(Frames, GoToTheTargetThatTheSinkNames) {
  FrameWriter writer;
  writer.append(made(5, 2, 100001));
  writer.append(made(6, 2, 10));
  std::mt19937 rng(1);
  auto wire = drain(writer, rng);
  auto memory = std::make_shared<std::vector<std::byte>>(100001);
  Collect sink;
  sink.target = {*memory, memory};
  FrameReader reader(1 << 20, 1 << 20);
  ASSERT_TRUE(feed(reader, wire, 7000, rng, sink).ok());
  ASSERT_EQ(sink.messages.size(), 2u);
  EXPECT_EQ(sink.messages[0].payload.first().data(), memory->data());
  EXPECT_EQ(sink.messages[0].payload.first().text(), made(5, 2, 100001).payload.first().text());
  EXPECT_EQ(sink.messages[1].payload.size(), 10u);
}

TEST(Frames, RefuseClaimedDescriptorsThatDidNotArrive) {
  FrameHeader header{.kind = 8, .fd_count = 1};
  std::array<std::byte, FrameHeader::kBytes> raw;
  header.encode(raw);
  FrameReader reader(64, 64);
  Collect sink;
  std::mt19937 rng(1);
  EXPECT_EQ(feed(reader, raw, 100, rng, sink).code(), ErrorCode::kInvalidArgument);
}

TEST(Frames, BoundDescriptorsThatNoFrameClaims) {
  FrameReader reader(64, 64);
  Status status;
  std::size_t added = 0;
  for (; added < 1000 && status.ok(); ++added) status = reader.add_fd(FileDescriptor(::dup(0)));
  EXPECT_EQ(added, FrameReader::kUnclaimedFdsMax + 1);
}

TEST(FrameKind, PairsRequestsWithReplies) {
  EXPECT_EQ(reply_kind(FrameKind::kCall), FrameKind::kCallReply);
  EXPECT_EQ(reply_kind(FrameKind::kObject), FrameKind::kObjectReply);
  EXPECT_TRUE(is_reply(FrameKind::kControlReply));
  EXPECT_FALSE(is_reply(FrameKind::kControlEvent));
  EXPECT_DEATH(reply_kind(FrameKind::kCancel), "check failed");
}

TEST(Payload, FlattensPieces) {
  Payload payload;
  EXPECT_TRUE(payload.empty());
  payload.add(Buffer::copy_of("ab"));
  const std::byte* only = payload.first().data();
  EXPECT_EQ(payload.flatten().data(), only);
  payload.add(Buffer::copy_of("cde"));
  EXPECT_EQ(payload.size(), 5u);
  EXPECT_EQ(payload.flatten().text(), "abcde");
}

}  // namespace
}  // namespace runtime
