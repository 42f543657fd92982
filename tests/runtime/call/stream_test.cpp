#include "runtime/call/stream.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/stream_state.h"
#include "tests/runtime/call/caller_fixture.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;
using test::small_value;

// The caller's half of a stream, whose values and end are the test's.
class CallerStreamTest : public test::CallerTest {
 protected:
  std::shared_ptr<StreamState> state() { return std::make_shared<StreamState>(context_, 4); }
  static Stream<int> stream_of(std::shared_ptr<StreamState> state) {
    return Stream<int>(OpenStream{std::move(state), nullptr});
  }
  /// Puts a value, and returns what goes when the value does.
  static std::weak_ptr<int> put(StreamState& state, int number) {
    auto loan = std::make_shared<int>(number);
    ObjectValue value = small_value(number);
    value.loan = loan;
    state.put(std::move(value));
    return loan;
  }
};

TEST_F(CallerStreamTest, ALoopEndsAtTheEndOrAtAFailureWhichStatusTells) {
  for (const Status& end : {Status(), task_failed("out of tokens")}) {
    const auto values = state();
    Stream<int> stream = stream_of(values);
    put(*values, 1);
    put(*values, 2);
    values->end(end);
    std::vector<int> taken;
    for (const int number : stream) taken.push_back(number);
    EXPECT_EQ(taken, (std::vector<int>{1, 2}));
    EXPECT_EQ(stream.status(), end);
    EXPECT_TRUE(stream.done());
  }
}

TEST_F(CallerStreamTest, GoesOnAfterADeadlineOfNext) {
  const auto values = state();
  Stream<int> stream = stream_of(values);
  EXPECT_EQ(stream.next(1ms).status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(stream.status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(stream.done());
  put(*values, 7);
  EXPECT_EQ(stream.next().value(), 7);
  EXPECT_TRUE(stream.status().ok());
}

TEST_F(CallerStreamTest, AValueOfAnotherTypeIsAFailureOfItsOwn) {
  const auto values = state();
  Stream<std::string> stream(OpenStream{values, nullptr});
  put(*values, 1 << 30);
  ObjectValue text;
  Encoder encoder;
  encode_value(encoder, std::string("next"));
  text.bytes = encoder.to_buffer();
  values->put(std::move(text));
  EXPECT_FALSE(stream.next().ok());
  EXPECT_FALSE(stream.status().ok());
  EXPECT_EQ(stream.next().value(), "next");
}

TEST_F(CallerStreamTest, DroppingItDropsItsValuesAndMovingItDoesNot) {
  const auto values = state();
  auto stream = std::make_unique<Stream<int>>(stream_of(values));
  const std::weak_ptr<int> value = put(*values, 1);
  Stream<int> moved = std::move(*stream);
  stream.reset();
  EXPECT_FALSE(value.expired());
  EXPECT_EQ(moved.next().value(), 1);
  const std::weak_ptr<int> second = put(*values, 2);
  Stream<int>& same = moved;
  moved = std::move(same);
  EXPECT_FALSE(second.expired()) << "moved onto itself";
  moved = stream_of(state());
  EXPECT_TRUE(second.expired()) << "another stream has taken its place";
}

TEST_F(CallerStreamTest, OneWithoutACallSaysWhyThereIsNone) {
  Stream<int> none;
  expect_failure(none.next().status(), ErrorCode::kInvalidArgument, {"no call"});
  EXPECT_TRUE(none.done());
  Stream<int> refused(
      OpenStream{nullptr, ObjectState::failed(nullptr, not_found("no such actor"))});
  EXPECT_EQ(refused.next().status(), not_found("no such actor"));
  EXPECT_EQ(refused.status(), not_found("no such actor"));
  EXPECT_TRUE(refused.done());
  EXPECT_TRUE(refused.result().is_ready());
}

}  // namespace
}  // namespace runtime
