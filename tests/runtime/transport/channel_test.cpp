#include "runtime/transport/channel.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <future>
#include <thread>

#include "fixture.h"
#include "tests/support/eventually.h"

namespace runtime {
namespace {

Deadline soon() { return deadline_after(seconds(20)); }

std::string trimmed(std::string_view text) {
  return std::string(text.substr(0, text.find_last_not_of(' ') + 1));
}

class ChannelKinds : public ::testing::TestWithParam<bool> {};

TEST_P(ChannelKinds, AnswersARequest) {
  Pair pair(GetParam());
  pair.echo();
  auto reply = pair.client->request_blocking(text_message(FrameKind::kCall, "hello"), soon());
  ASSERT_TRUE(reply.ok()) << reply.status().to_string();
  EXPECT_EQ(reply->kind, FrameKind::kCallReply);
  EXPECT_EQ(trimmed(reply->meta.text()), "hello");
}

TEST_P(ChannelKinds, CarriesPayloadsOfEverySize) {
  Pair pair(GetParam());
  pair.echo();
  for (std::size_t bytes :
       {1, 7, 8, 9, 1000, 8192, 8193, 32000, 32768, 65536, 65537, 1 << 20, (16 << 20) + 3}) {
    Message message = text_message(FrameKind::kObject, "sizes", bytes);
    Buffer sent = message.payload.first();
    auto reply = pair.client->request_blocking(std::move(message), soon());
    ASSERT_TRUE(reply.ok()) << bytes << ": " << reply.status().to_string();
    ASSERT_EQ(reply->payload.size(), bytes);
    EXPECT_EQ(reply->payload.first().text(), sent.text()) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(reply->payload.first().data()) % 8, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(reply->meta.data()) % 8, 0u);
  }
}

TEST_P(ChannelKinds, KeepsTheOrderOfThousandsOfRequestsInFlight) {
  Pair pair(GetParam());
  std::vector<std::uint64_t> seen;  // on the server's loop until all replies are in
  pair.server->set_handler([&seen](const std::shared_ptr<Channel>& channel, Message message) {
    std::uint64_t number;
    std::memcpy(&number, message.meta.data(), sizeof number);
    seen.push_back(number);
    Message reply = reply_to(message, message.meta);
    (void)channel->send(std::move(reply), Flush::kSoon);
  });
  constexpr std::uint64_t kCount = 20000;
  Event done(pair.client_loop);
  std::uint64_t answered = 0;
  bool in_order = true;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    Message message;
    message.kind = FrameKind::kCall;
    message.meta = Buffer::copy_of(std::as_bytes(std::span(&i, 1)));
    pair.client->request(std::move(message), soon(), [&, i](Result<Message> reply) {
      in_order &= reply.ok() && answered == i;
      if (++answered == kCount) done.set();
    });
  }
  ASSERT_TRUE(pair.client_loop.run_until(done, soon()));
  EXPECT_TRUE(in_order);
  ASSERT_EQ(seen.size(), kCount);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_P(ChannelKinds, ServesManyThreadsAtOnce) {
  Pair pair(GetParam());
  pair.echo();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pair, &good, t] {
      for (int i = 0; i < 300; ++i) {
        std::string text = std::to_string(t) + "/" + std::to_string(i);
        auto reply = pair.client->request_blocking(
            text_message(FrameKind::kCall, text, i % 7 == 0 ? 100000 : 10), soon());
        if (reply.ok() && trimmed(reply->meta.text()) == text) ++good;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good.load(), 1200);
}

INSTANTIATE_TEST_SUITE_P(Sockets, ChannelKinds, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Unix" : "Tcp"; });

TEST(Channel, CallsBothWays) {
  Pair pair;
  pair.echo();
  pair.client->set_handler([](const std::shared_ptr<Channel>& channel, Message message) {
    Message reply = reply_to(message, text_message(FrameKind::kCall, "from the client").meta);
    (void)channel->send(std::move(reply));
  });
  auto reply = pair.server->request_blocking(text_message(FrameKind::kControl, "x"), soon());
  ASSERT_TRUE(reply.ok()) << reply.status().to_string();
  EXPECT_EQ(reply->kind, FrameKind::kControlReply);
  EXPECT_EQ(trimmed(reply->meta.text()), "from the client");
}

TEST(Channel, ExpiresAnUnansweredRequest) {
  Pair pair;
  pair.server->set_handler([](const std::shared_ptr<Channel>&, Message) {});
  auto before = std::chrono::steady_clock::now();
  auto reply = pair.client->request_blocking(text_message(FrameKind::kCall, "x"),
                                             deadline_after(milliseconds(50)));
  auto took = std::chrono::steady_clock::now() - before;
  EXPECT_EQ(reply.status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_GE(took, milliseconds(49));
  EXPECT_LT(took, seconds(30)) << "a guard: it ends by its own deadline";
  EXPECT_EQ(pair.client->outstanding(), 0u);
}

TEST(Channel, IgnoresAReplyThatComesAfterItsDeadline) {
  Pair pair;
  Message held;
  std::promise<void> got;
  pair.server->set_handler([&](const std::shared_ptr<Channel>&, Message message) {
    held = std::move(message);
    got.set_value();
  });
  auto late = pair.client->request_blocking(text_message(FrameKind::kCall, "late"),
                                            deadline_after(milliseconds(20)));
  EXPECT_EQ(late.status().code(), ErrorCode::kDeadlineExceeded);
  got.get_future().get();
  ASSERT_TRUE(pair.server->send(reply_to(held, held.meta)).ok());
  pair.echo();
  auto next = pair.client->request_blocking(text_message(FrameKind::kCall, "next"), soon());
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(trimmed(next->meta.text()), "next");
}

TEST(Channel, FailsOutstandingRequestsWhenThePeerCloses) {
  Pair pair;
  pair.server->set_handler(
      [](const std::shared_ptr<Channel>& channel, Message) { channel->close(unavailable("bye")); });
  auto reply = pair.client->request_blocking(text_message(FrameKind::kCall, "x"), soon());
  EXPECT_EQ(reply.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(reply.status().message().find("closed the connection"), std::string::npos)
      << reply.status().message();
  auto after = pair.client->request_blocking(text_message(FrameKind::kCall, "y"), soon());
  EXPECT_EQ(after.status().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(pair.client->send(text_message(FrameKind::kCancel, "z")).code(),
            ErrorCode::kUnavailable);
}

TEST(Channel, TellsOnceThatItClosed) {
  Pair pair;
  std::promise<Status> closed;
  pair.client->set_on_close([&](Status why) { closed.set_value(why); });
  pair.server->close(unavailable("over"));
  EXPECT_EQ(closed.get_future().get().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(pair.client->closed());
  std::promise<Status> again;
  pair.client->set_on_close([&](Status why) { again.set_value(why); });
  EXPECT_EQ(again.get_future().get().code(), ErrorCode::kUnavailable);
}

TEST(Channel, SendsWhatWasQueuedBeforeClosing) {
  Pair pair;
  std::promise<std::string> got;
  pair.server->set_handler([&](const std::shared_ptr<Channel>&, Message message) {
    got.set_value(trimmed(message.meta.text()));
  });
  ASSERT_TRUE(pair.client->send(text_message(FrameKind::kCancel, "last words"), Flush::kSoon).ok());
  pair.client->close(cancelled("done"));
  EXPECT_EQ(got.get_future().get(), "last words");
}

TEST(Channel, HearsWhatThePeerSentBeforeItWentAlsoWhenAWriteFindsOutFirst) {
  Pair pair;
  std::vector<std::string> heard;
  std::promise<std::vector<std::string>> ended;
  pair.client->set_handler([&](const std::shared_ptr<Channel>&, Message message) {
    heard.push_back(trimmed(message.meta.text()));
  });
  pair.client->set_on_close([&](Status) { ended.set_value(heard); });
  // The client's loop is elsewhere while the peer speaks and goes.
  std::promise<void> busy, release;
  pair.client_loop.post([&] {
    busy.set_value();
    release.get_future().get();
  });
  busy.get_future().get();
  ASSERT_TRUE(pair.server->send(text_message(FrameKind::kControlEvent, "first")).ok());
  ASSERT_TRUE(pair.server->send(text_message(FrameKind::kControlEvent, "last")).ok());
  std::promise<void> gone;
  pair.server->set_on_close([&](Status) { gone.set_value(); });
  pair.server->close(unavailable("bye"));
  gone.get_future().get();
  EXPECT_TRUE(pair.client->send(text_message(FrameKind::kControlEvent, "x"))
                  .ok());  // accepted, and then the socket refuses it
  EXPECT_TRUE(pair.client->closed());
  release.set_value();
  EXPECT_EQ(ended.get_future().get(), (std::vector<std::string>{"first", "last"}));
}

TEST(Channel, PassesDescriptors) {
  ChannelOptions options;
  options.descriptors_queued_max =
      300;  // all of them, should the reader not get a turn before the last
  Pair pair(true, options);
  std::promise<std::vector<std::string>> got;
  auto texts = std::make_shared<std::vector<std::string>>();
  pair.server->set_handler([&got, texts](const std::shared_ptr<Channel>&, Message message) {
    for (const FileDescriptor& fd : message.fds) {
      char text[32];
      ssize_t size = ::pread(fd.get(), text, sizeof text, 0);
      texts->emplace_back(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
    if (!message.fds.empty() && texts->size() == 300) got.set_value(*texts);
  });
  std::vector<std::string> sent;
  for (int i = 0; i < 100; ++i) {
    Message message = text_message(FrameKind::kControlEvent, "fds", i % 3 == 0 ? 50000 : 3);
    for (int j = 0; j < 3; ++j) {
      std::string name = "file " + std::to_string(i) + "/" + std::to_string(j);
      std::string path = pair.dir.file("fd");
      FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      ASSERT_EQ(::write(fd.get(), name.data(), name.size()), static_cast<ssize_t>(name.size()));
      ::unlink(path.c_str());
      sent.push_back(name);
      message.fds.push_back(std::move(fd));
    }
    Message plain = text_message(FrameKind::kControlEvent, "between");
    ASSERT_TRUE(pair.client->send(std::move(message), Flush::kSoon).ok());
    ASSERT_TRUE(pair.client->send(std::move(plain), Flush::kSoon).ok());
  }
  EXPECT_EQ(got.get_future().get(), sent);
}

TEST(Channel, RefusesDescriptorsOnTcp) {
  Pair pair(false);
  Message message = text_message(FrameKind::kControlEvent, "x");
  message.fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(pair.client->send(std::move(message)).code(), ErrorCode::kInvalidArgument);
}

TEST(Channel, BoundsTheQueueOfASlowReader) {
  ChannelOptions options;
  options.queued_bytes_max = 4 << 20;
  Pair pair(true, options);
  pair.server->set_handler([](const std::shared_ptr<Channel>&, Message) {});
  pair.server->pause_receiving();
  Status status;
  int sent = 0;
  for (; sent < 1000 && status.ok(); ++sent)
    status = pair.client->send(text_message(FrameKind::kControlEvent, "x", 100000));
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << status.to_string();
  EXPECT_LT(sent, 100);
  EXPECT_LE(pair.client->queued_bytes(), options.queued_bytes_max);

  std::promise<std::size_t> drained;
  std::atomic<bool> early{false};
  pair.client->when_drained(0, [&] { drained.set_value(pair.client->queued_bytes()); });
  pair.client->when_drained(std::size_t{1} << 30, [&] { early = true; });
  EXPECT_TRUE(support::eventually([&] { return early.load(); })) << "as much is always free";
  auto told = drained.get_future();
  EXPECT_EQ(told.wait_for(milliseconds(0)), std::future_status::timeout)
      << "the one before it is not told yet";
  pair.server->resume_receiving();
  ASSERT_EQ(told.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(told.get(), 0u);
  EXPECT_TRUE(support::eventually([&] { return pair.client->queued_bytes() == 0; }));
  EXPECT_TRUE(pair.client->send(text_message(FrameKind::kControlEvent, "x")).ok());
}

TEST(Channel, TellsWhoWaitsForRoomOfItsEnd) {
  Pair pair(true);
  pair.server->set_handler([](const std::shared_ptr<Channel>&, Message) {});
  pair.server->pause_receiving();
  while (pair.client->queued_bytes() == 0)
    ASSERT_TRUE(pair.client->send(text_message(FrameKind::kControlEvent, "x", 100000)).ok());
  std::promise<bool> told;
  pair.client->when_drained(0, [&] { told.set_value(pair.client->closed()); });
  pair.client->close(cancelled("enough"));
  auto closed = told.get_future();
  ASSERT_EQ(closed.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_TRUE(closed.get());
}

TEST(Channel, RefusesAFrameOverTheLimitsBeforeSendingIt) {
  ChannelOptions options;
  options.payload_bytes_max = 1000;
  options.meta_bytes_max = 64;
  Pair pair(true, options);
  pair.echo();
  EXPECT_EQ(pair.client->send(text_message(FrameKind::kCancel, "x", 1001)).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(pair.client->send(text_message(FrameKind::kCancel, std::string(65, 'x'))).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(
      pair.client->request_blocking(text_message(FrameKind::kCall, "x", 1000), soon()).ok());
}

TEST(Channel, ClosesWhenThePeerSendsMoreThanIsAllowed) {
  ChannelOptions strict;
  strict.payload_bytes_max = 1000;
  Pair pair(true, {}, strict);
  pair.echo();
  auto reply = pair.client->request_blocking(text_message(FrameKind::kCall, "x", 1001), soon());
  EXPECT_EQ(reply.status().code(), ErrorCode::kUnavailable);
  EXPECT_NE(pair.server->close_reason().message().find("payload of 1001 bytes"), std::string::npos)
      << pair.server->close_reason().message();
}

TEST(Channel, ReceivesALargePayloadIntoItsTarget) {
  Pair pair;
  pair.echo();
  constexpr std::size_t kBytes = 3 << 20;
  auto target = std::make_shared<std::vector<std::byte>>(kBytes);
  Event done(pair.client_loop);
  Result<Message> reply = cancelled("none");
  Message message = text_message(FrameKind::kObject, "x", kBytes);
  Buffer sent = message.payload.first();
  pair.client->request_into(std::move(message), soon(), *target, target,
                            [&](Result<Message> result) {
                              reply = std::move(result);
                              done.set();
                            });
  ASSERT_TRUE(pair.client_loop.run_until(done, soon()));
  ASSERT_TRUE(reply.ok()) << reply.status().to_string();
  EXPECT_EQ(reply->payload.first().data(), target->data());
  EXPECT_EQ(std::memcmp(target->data(), sent.data(), kBytes), 0);
}

asio::awaitable<void> ask(std::shared_ptr<Channel> channel, std::promise<std::string>& out) {
  std::string all;
  for (int i = 0; i < 3; ++i) {
    Message message = text_message(FrameKind::kCall, std::to_string(i));
    auto reply = co_await channel->request(std::move(message), soon());
    all += reply.ok() ? trimmed(reply->meta.text()) : reply.status().to_string();
  }
  out.set_value(all);
}

TEST(Channel, IsAwaitable) {
  Pair pair;
  pair.echo();
  std::promise<std::string> out;
  asio::co_spawn(pair.client_loop.executor(), ask(pair.client, out),
                 [](std::exception_ptr error) { EXPECT_FALSE(error); });
  EXPECT_EQ(out.get_future().get(), "012");
}

TEST(Channel, BoundsOutstandingRequests) {
  ChannelOptions options;
  options.requests_max = 10;
  Pair pair(true, options);
  pair.server->set_handler([](const std::shared_ptr<Channel>&, Message) {});
  for (int i = 0; i < 10; ++i)
    pair.client->request(text_message(FrameKind::kCall, "x"), soon(), [](Result<Message>) {});
  auto reply = pair.client->request_blocking(text_message(FrameKind::kCall, "x"), soon());
  EXPECT_EQ(reply.status().code(), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace runtime
