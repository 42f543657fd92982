#include "runtime/call/actor_handle.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/call/caller_options.h"
#include "tests/runtime/call/caller_fixture.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;
using test::Adder;

class ActorHandleTest : public test::CallerTest {
 protected:
  using Handle = ActorHandle<Adder>;

  static Buffer encoded(const Handle& handle) {
    Encoder encoder;
    encode_value(encoder, handle);
    return encoder.to_buffer();
  }
  Result<Handle> decoded(Buffer bytes, const ObjectContextPtr& context) {
    Decoder decoder(std::move(bytes), {}, context);
    return decode_all<Handle>(decoder);
  }

  test::FakeObjectContext receiver_{loop_};
};

TEST_F(ActorHandleTest, TravelsWithItsAddressAndTheDefaultsOfItsCalls) {
  ActorAddress from = address(9);
  from.shared = true;
  from.caller_options = encode_caller_options({.out_of_order = true});
  const Handle handle(client(from), {.timeout = 7s, .max_task_retries = -1});
  const Result<Handle> arrived = decoded(encoded(handle), receiver_.get());
  ASSERT_TRUE(arrived.ok()) << arrived.status().to_string();
  EXPECT_EQ(arrived->call_timeout(), 7s);
  EXPECT_EQ(arrived->defaults().max_task_retries, -1);
  EXPECT_EQ(receiver_.references.addresses, std::vector{from});
}

TEST_F(ActorHandleTest, OneThatRefersToNoActorArrivesAsSuch) {
  const Result<Handle> arrived = decoded(encoded(Handle()), nullptr);
  ASSERT_TRUE(arrived.ok()) << arrived.status().to_string();
  EXPECT_FALSE(arrived->is_valid());
  EXPECT_TRUE(receiver_.references.addresses.empty());
}

TEST_F(ActorHandleTest, MalformedOnesMakeNoClient) {
  expect_failure(
      decoded(encoded(Handle(client(address()), {.timeout = 0s})), receiver_.get()).status(),
      ErrorCode::kInvalidArgument, {"time"});
  ActorAddress odd = address();
  odd.actor = ActorId::random();
  odd.caller_options = "what no version wrote";
  expect_failure(decoded(encoded(Handle(client(odd))), receiver_.get()).status(),
                 ErrorCode::kInvalidArgument, {"options"});
  expect_failure(decoded(encoded(Handle(client(address()))), nullptr).status(),
                 ErrorCode::kInvalidArgument, {"outside of a running program"});
  EXPECT_TRUE(receiver_.references.addresses.empty());
}

TEST_F(ActorHandleTest, CallsThroughNoneFail) {
  const Status why = failure_of(Handle().call(&Adder::add, 1).state());
  expect_failure(why, ErrorCode::kInvalidArgument, {"refers to no actor"});
}

TEST(CallOptions, TheTighterOfTimeoutAndUntilCounts) {
  EXPECT_EQ(CallOptions{}.timeout_or(60s), 60s);
  EXPECT_EQ(CallOptions{.timeout = 2s}.timeout_or(60s), 2s);
  EXPECT_EQ(CallOptions{.timeout = -1s}.timeout_or(60s), 0s) << "it is too late already";
  const CallOptions far{.timeout = 2s, .until = steady_now() + 1h};
  EXPECT_EQ(far.timeout_or(60s), 2s);
  const CallOptions near{.until = steady_now() + 30s};
  EXPECT_LE(near.timeout_or(60s), 30s);
  EXPECT_GT(near.timeout_or(60s), 0s);
  EXPECT_EQ(CallOptions{.until = steady_now() - 1s}.timeout_or(60s), 0s);
}

}  // namespace
}  // namespace runtime
