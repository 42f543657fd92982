// Requests from a node's store to an owner of objects, and the deadline of get(). Memory and
// reading: shared_heap_test.cpp, object_store_test.cpp.
#include "runtime/store/object_client.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/transport/blocking.h"
#include "tests/runtime/transport/channel_pair.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ObjectClientTest : public ::testing::Test {
 protected:
  ObjectClientTest() {
    pair_.near->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
      EXPECT_TRUE(client_->handle(from, message));
    });
    pair_.far->set_handler([this](const std::shared_ptr<Channel>&, Message message) {
      held_.push_back(std::move(message));
    });
  }
  ~ObjectClientTest() override {
    run_on(loop_, [&] { pair_.close(); });
    run_on(loop_, [] {});  // what that closed
    client_.reset();
  }
  static Deadline soon() { return deadline_after(20s); }
  static ObjectLocation somewhere() {
    return {ObjectId::random(), NodeId::random(), "10.0.0.1:1", 0, 3, 64, 5};
  }

  Result<object_wire::Reply> reply_to_message(Message message) {
    const Result<Message> reply = pair_.far->request_blocking(std::move(message), soon());
    if (!reply.ok()) return reply.status();
    return object_wire::decode_reply(reply->meta);
  }
  Result<object_wire::Reply> asked(const object_wire::Request& request) {
    return reply_to_message(object_wire::request_message(request));
  }
  /// The answer, which is expected to be of that kind.
  template <class T>
  T answer(const object_wire::Request& request) {
    const Result<object_wire::Reply> reply = asked(request);
    EXPECT_TRUE(reply.ok()) << reply.status().to_string();
    const T* wanted = reply.ok() ? std::get_if<T>(&*reply) : nullptr;
    EXPECT_NE(wanted, nullptr) << "it is another answer";
    return wanted != nullptr ? *wanted : T();
  }

  EventLoop loop_;
  ChannelPair pair_{loop_, peer_of(Role::kNode), peer_of(Role::kDriver)};
  std::vector<Message> held_;  // what the process asks for; on the loop
  std::unique_ptr<ObjectClient> client_ = std::make_unique<ObjectClient>(pair_.near);
};

TEST_F(ObjectClientTest, TheOwnerHearsOfBorrowersAndOfTheirEnd) {
  std::vector<ObjectLocation> held, let_go;
  client_->set_owner_hooks(
      {.hold = [&](const ObjectLocation& location) { held.push_back(location); },
       .unhold = [&](const ObjectLocation& location) { let_go.push_back(location); },
       .report = {}});
  const ObjectLocation first = somewhere(), second = somewhere();
  (void)answer<object_wire::Done>(object_wire::Hold{{first, second}});
  EXPECT_EQ(held, (std::vector<ObjectLocation>{first, second}));
  EXPECT_TRUE(let_go.empty());
  (void)answer<object_wire::Done>(object_wire::Unhold{{second}});
  EXPECT_EQ(let_go, (std::vector<ObjectLocation>{second}));
  EXPECT_EQ(held.size(), 2u);
}

TEST_F(ObjectClientTest, AReportIsTheOwners) {
  client_->set_owner_hooks({.hold = {}, .unhold = {}, .report = [] {
                              return object_wire::ProcessReport{.objects = {}, .inline_objects = 7};
                            }});
  EXPECT_EQ(answer<object_wire::ProcessReport>(object_wire::Report{}).inline_objects, 7u);
}

// Making an object takes its time, and moving many does too.
TEST_F(ObjectClientTest, AnswersThatTakeTimeComeWhenTheyAreThere) {
  const ObjectLocation lost = somewhere(), made = somewhere();
  const Status cannot = not_found("no task made it");
  const NodeId leaving = NodeId::random();
  client_->set_owner_hooks(
      {.hold = {},
       .unhold = {},
       .report = {},
       .remake =
           [&](const ObjectLocation& wanted, UniqueFunction<void(Result<ObjectLocation>)> done) {
             loop_.post([&, wanted, done = std::move(done)]() mutable {
               done(wanted == lost ? Result<ObjectLocation>(made) : Result<ObjectLocation>(cannot));
             });
           },
       .evacuate =
           [&](NodeId node, UniqueFunction<void(std::uint64_t)> done) {
             loop_.post(
                 [&, node, done = std::move(done)]() mutable { done(node == leaving ? 3u : 0u); });
           }});
  EXPECT_EQ(answer<ObjectLocation>(object_wire::Remake{lost, "10.0.0.2:1"}), made);
  EXPECT_EQ(asked(object_wire::Remake{made, "10.0.0.2:1"}).status(), cannot);
  EXPECT_EQ(answer<object_wire::Evacuated>(object_wire::Evacuate{leaving}).failed, 3u);
}

TEST_F(ObjectClientTest, AProcessWithoutUnusedMemorySurrendersNone) {
  EXPECT_TRUE(answer<object_wire::Extents>(object_wire::Surrender{1 << 20}).extents.empty());
}

TEST_F(ObjectClientTest, WhatItDoesNotServeIsRefused) {
  const std::vector<object_wire::Request> requests = {
      object_wire::Lease{4096, 0}, object_wire::Hold{{somewhere()}}, object_wire::Report{},
      object_wire::Remake{somewhere(), ""}, object_wire::Evacuate{NodeId::random()}};
  for (const object_wire::Request& request : requests)
    support::expect_failure(asked(request).status(), ErrorCode::kInvalidArgument,
                            {"only a node's store serves this"});
  EXPECT_EQ(
      reply_to_message(object_wire::request_message(Buffer::copy_of("garbage!"))).status().code(),
      ErrorCode::kInvalidArgument);
}

TEST_F(ObjectClientTest, FramesOfAnotherKindAreLeftToOthers) {
  Message message = object_wire::request_message(object_wire::Report{});
  message.kind = FrameKind::kControl;
  const std::size_t bytes = message.meta.size();
  EXPECT_FALSE(on_loop(loop_, [&] { return client_->handle(pair_.near, message); }));
  EXPECT_EQ(message.meta.size(), bytes);
}

TEST_F(ObjectClientTest, AGetEndsAtItsDeadlineAndOnce) {
  EXPECT_EQ(client_->get(somewhere(), deadline_after(1ms)).status().code(),
            ErrorCode::kDeadlineExceeded);
  std::vector<ErrorCode> ends;
  client_->get(somewhere(), deadline_after(1ms),
               [&](const Result<BytesView>& result) { ends.push_back(result.status().code()); });
  EXPECT_TRUE(comes_true(loop_, [&] { return !ends.empty(); }));
  ASSERT_TRUE(comes_true(loop_, [&] { return !held_.empty(); }));
  run_on(loop_, [&] {
    for (const Message& request : held_) {
      if (request.id == 0) continue;
      (void)pair_.far->send(
          reply_to(request, object_wire::encode_failure(object_lost("its owner freed it"))));
    }
  });
  // A question and its answer behind those.
  (void)answer<object_wire::Extents>(object_wire::Surrender{1});
  EXPECT_EQ(on_loop(loop_, [&] { return ends; }),
            (std::vector<ErrorCode>{ErrorCode::kDeadlineExceeded}));
}

}  // namespace
}  // namespace runtime
