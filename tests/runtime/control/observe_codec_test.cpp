// Requests of people who look at a cluster, as some program may have written them. That they come
// back equal: control_codec_test.cpp.
#include "runtime/control/observe_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <chrono>

namespace runtime {
namespace {

ObserveControl written_and_read(const ObserveControl& request) {
  capnp::MallocMessageBuilder builder;
  auto to = builder.initRoot<schema::ObserveRequest>();
  schema_values::store(request, to);
  return schema_values::load(to.asReader());
}

TEST(ObserveCodec, APageHasRoomAndALimit) {
  const auto limit = [](std::uint32_t asked) {
    control::ListActors list;
    list.limit = asked;
    return std::get<control::ListActors>(written_and_read(list)).limit;
  };
  EXPECT_EQ(limit(0), 1u) << "a page of none would never end";
  EXPECT_EQ(limit(7), 7u);
  EXPECT_EQ(limit(UINT32_MAX), control::ListActors::kLimitMax);
}

TEST(ObserveCodec, NoTraceIsRecordedForLongerThanTheLongest) {
  const auto recorded = [](std::chrono::milliseconds time) {
    return std::get<control::Trace>(written_and_read(control::Trace{time, true})).record;
  };
  EXPECT_EQ(recorded(control::Trace::kForMax), control::Trace::kForMax);
  EXPECT_EQ(recorded(std::chrono::milliseconds::max()), control::Trace::kForMax);
  EXPECT_EQ(recorded(std::chrono::milliseconds(-1)).count(), 0);
}

}  // namespace
}  // namespace runtime
