// The server of metrics over real sockets, and the streams that it serves them on. What requests
// are answered: http_connection_test.cpp.
#include "runtime/metrics/metrics_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/metrics/http_stream.h"
#include "runtime/process/pipe.h"
#include "tests/support/on_loop.h"

namespace runtime {
namespace {

/// All that comes until the other end says that nothing more will.
std::string received_until_end(const FileDescriptor& socket) {
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t got; (got = ::recv(socket.get(), block.data(), block.size(), 0)) > 0;)
    text.append(block.data(), static_cast<std::size_t>(got));
  return text;
}

SocketPair connected_sockets() {
  Result<SocketPair> pair = make_socket_pair();
  EXPECT_TRUE(pair.ok()) << pair.status().message();
  return pair.ok() ? *std::move(pair) : SocketPair{};
}

class MetricsServerTest : public ::testing::Test {
 protected:
  MetricsServerTest() {
    server_ = http_metrics().server(
        loop_, {}, [](const auto& told) { told(std::string("starling_actors 3\n")); });
  }
  ~MetricsServerTest() override {
    run_on(loop_, [&] { server_.reset(); });
  }
  /// A connection that began with these bytes.
  FileDescriptor connect(std::string begun) {
    SocketPair pair = connected_sockets();
    run_on(loop_, [&] { server_->serve(std::move(pair.theirs), std::move(begun)); });
    return std::move(pair.ours);
  }

  EventLoop loop_;
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerTest, AnswersARequestAndEndsTheConnection) {
  const FileDescriptor client = connect("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = received_until_end(client);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_TRUE(answer.ends_with("starling_actors 3\n")) << answer;
}

TEST_F(MetricsServerTest, WhoAsksNothingKeepsNoClientOut) {
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 16; ++i) silent.push_back(connect("GET "));
  const FileDescriptor client = connect("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(received_until_end(client).starts_with("HTTP/1.1 200"));
  (void)received_until_end(silent.front());  // the oldest has been ended
  char byte = 0;
  EXPECT_EQ(::recv(silent.back().get(), &byte, 1, MSG_DONTWAIT), -1) << "the others go on";
}

TEST_F(MetricsServerTest, ItsEndEndsItsConnections) {
  const FileDescriptor client = connect("GET ");
  run_on(loop_, [&] { server_.reset(); });
  (void)received_until_end(client);
}

// -- Streams

TEST(PlainHttpStream, ReadsWritesAndSaysThatItHasEnded) {
  SocketPair pair = connected_sockets();
  asio::io_context context;
  auto stream = plain_http_stream(HttpStream::Socket(
      context, asio::generic::stream_protocol(AF_UNIX, 0), pair.theirs.release()));
  std::string begun;
  stream->open("GET ", [&](boost::system::error_code ec, std::string received) {
    EXPECT_FALSE(ec);
    begun = std::move(received);
  });
  EXPECT_EQ(begun, "GET ") << "what was read already is of the request";
  ASSERT_EQ(::write(pair.ours.get(), "/ x", 3), 3);
  std::array<char, 16> block;
  std::size_t count = 0;
  stream->read_some(asio::buffer(block),
                    [&](boost::system::error_code, std::size_t bytes) { count = bytes; });
  context.run();
  EXPECT_EQ(std::string(block.data(), count), "/ x");
  stream->write(asio::buffer("answer", 6), [&](boost::system::error_code ec, std::size_t) {
    EXPECT_FALSE(ec);
    stream->end_writing([] {});
  });
  context.restart();
  context.run();
  EXPECT_EQ(received_until_end(pair.ours), "answer");
}

TEST(PlainHttpStream, ClosingEndsARead) {
  SocketPair pair = connected_sockets();
  asio::io_context context;
  auto stream = plain_http_stream(HttpStream::Socket(
      context, asio::generic::stream_protocol(AF_UNIX, 0), pair.theirs.release()));
  boost::system::error_code why;
  std::array<char, 16> block;
  stream->read_some(asio::buffer(block),
                    [&](boost::system::error_code ec, std::size_t) { why = ec; });
  stream->close();
  context.run();
  EXPECT_EQ(why, asio::error::operation_aborted);
}

}  // namespace
}  // namespace runtime
