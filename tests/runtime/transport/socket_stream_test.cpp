#include "runtime/transport/socket_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "runtime/transport/file_descriptor.h"

namespace runtime {
namespace {

class Frames : public FrameSink {
 public:
  std::vector<std::string> seen;

 private:
  void on_frame(Message message) override { seen.emplace_back(message.meta.text()); }
  PayloadTarget payload_target(const FrameHeader&) override { return {}; }
};

/// What a sealed stream sends for frames with these texts, a record each.
class Sealed {
 public:
  Sealed() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    sender_ = FileDescriptor(ends[0]);
    receiver_ = FileDescriptor(ends[1]);
  }
  std::string record(const std::string& text) {
    Message message;
    message.kind = FrameKind::kControlEvent;
    message.meta = Buffer::copy_of(text);
    FrameWriter writer;
    writer.append(std::move(message));
    FrameWriter::Batch batch;
    writer.gather(batch);
    EXPECT_EQ(stream_.send(sender_.get(), batch).error, 0);
    EXPECT_EQ(stream_.unsent(), 0u);
    std::string sent(4096, '\0');
    sent.resize(static_cast<std::size_t>(::recv(receiver_.get(), sent.data(), sent.size(), 0)));
    return sent;
  }

 private:
  SealedStream stream_{SymmetricKey{}, SymmetricKey{}};
  FileDescriptor sender_, receiver_;
};

/// A stream that has received these bytes.
struct Receiver {
  explicit Receiver(const std::string& bytes) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    far = FileDescriptor(ends[0]);
    near = FileDescriptor(ends[1]);
    EXPECT_EQ(::send(far.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  Status receive_all() {
    while (true) {
      const SocketStream::Received received = stream.receive(near.get(), reader, frames);
      if (!received.status.ok() || received.drained) return received.status;
    }
  }
  Status receive_to_end() {
    Status status;
    while (status.ok()) status = stream.receive(near.get(), reader, frames).status;
    return status;
  }
  FileDescriptor far, near;
  SealedStream stream{SymmetricKey{}, SymmetricKey{}};
  FrameReader reader{1 << 20, 1 << 20};
  Frames frames;
};

TEST(SealedStream, GivesFramesInTheirOrder) {
  Sealed sealed;
  std::string bytes;
  for (const char* text : {"first...", "second..", "third..."}) bytes += sealed.record(text);
  Receiver receiver(bytes);
  EXPECT_TRUE(receiver.receive_all().ok());
  EXPECT_EQ(receiver.frames.seen, (std::vector<std::string>{"first...", "second..", "third..."}));
}

// An attacker who changes a record to have it left out gets nothing through behind it, however
// often what is there is looked at.
TEST(SealedStream, NothingCountsBehindARecordThatWasChanged) {
  Sealed sealed;
  const std::string first = sealed.record("first...");
  std::string second = sealed.record("second..");
  second[10] ^= 1;
  Receiver receiver(first + second + sealed.record("third..."));
  EXPECT_EQ(receiver.receive_all().code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(receiver.stream.holds_frames());
  EXPECT_EQ(receiver.receive_all().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(receiver.frames.seen, std::vector<std::string>{"first..."});
}

TEST(SealedStream, ASizeThatNoRecordHasIsAChange) {
  Sealed sealed;
  std::string record = sealed.record("first...");
  record[3] = '\x7f';
  Receiver receiver(record);
  EXPECT_EQ(receiver.receive_all().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(receiver.frames.seen.empty());
}

TEST(SealedStream, ToldApartIsAnEndInTheMiddle) {
  Sealed sealed;
  const std::string record = sealed.record("first...");
  Receiver whole(record), half(record.substr(0, 20));
  whole.far.reset();
  half.far.reset();
  EXPECT_TRUE(whole.receive_to_end().message().ends_with("closed the connection"));
  EXPECT_NE(half.receive_to_end().message().find("in the middle of a frame"), std::string::npos);
}

}  // namespace
}  // namespace runtime
