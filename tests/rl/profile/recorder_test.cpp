#include "rl/profile/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace rl::profile {
namespace {

std::vector<std::string> names_of(const Recording& recording) {
  std::vector<std::string> names;
  for (const std::uint32_t name : recording.name) names.push_back(recording.names[name]);
  return names;
}

TEST(Recorder, KeepsNothingUnlessARecordingIsOn) {
  { const Span before("before"); }
  const Span open("opened before");
  start(100);
  { const Span inside("inside"); }
  const Recording recording = stop();
  { const Span after("after"); }
  EXPECT_EQ(names_of(recording), std::vector<std::string>{"inside"});
  EXPECT_EQ(stop().size(), 0u) << "nothing is on";
}

TEST(Recorder, ASpanThatOutlivesItsRecordingIsInNone) {
  start(100);
  auto open = std::make_unique<Span>("open");
  EXPECT_EQ(stop().size(), 0u);
  start(100);
  open.reset();
  EXPECT_EQ(stop().size(), 0u);
}

TEST(Recorder, SpansHaveTheirThreadKindAndOrder) {
  start(100);
  {
    const Span outer("outer", SpanKind::kCall);
    const Span inner("inner");
  }
  std::thread([] { const Span other("other", SpanKind::kKernel); }).join();
  add("given", SpanKind::kLap, 5, 9);
  const Recording recording = stop();
  ASSERT_TRUE(recording.consistent());
  const std::vector<std::string> names = names_of(recording);
  const auto at = [&](const char* name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  ASSERT_EQ(recording.size(), 4u);
  EXPECT_EQ(recording.threads.size(), 2u);
  EXPECT_EQ(recording.thread[at("outer")], recording.thread[at("inner")]);
  EXPECT_NE(recording.thread[at("outer")], recording.thread[at("other")]);
  EXPECT_NE(recording.threads[0].id, recording.threads[1].id);
  EXPECT_EQ(recording.kind[at("outer")], SpanKind::kCall);
  EXPECT_EQ(recording.kind[at("inner")], SpanKind::kOperation);
  EXPECT_EQ(recording.kind[at("other")], SpanKind::kKernel);
  EXPECT_EQ(recording.begin_ns[at("given")], 5);
  EXPECT_EQ(recording.end_ns[at("given")], 9);
  EXPECT_LE(recording.begin_ns[at("outer")], recording.begin_ns[at("inner")]);
  EXPECT_GE(recording.end_ns[at("outer")], recording.end_ns[at("inner")]);
}

TEST(Recorder, KernelsBeyondTheLimitLeaveRoomForTheRest) {
  start(8);
  for (int i = 0; i < 20; ++i) add("kernel", SpanKind::kKernel, i, i + 1);
  add("call", SpanKind::kCall, 0, 20);
  add("operation", SpanKind::kOperation, 0, 20);
  add("one too many", SpanKind::kOperation, 0, 20);
  const Recording recording = stop();
  EXPECT_EQ(std::count(recording.kind.begin(), recording.kind.end(), SpanKind::kKernel), 6);
  EXPECT_EQ(recording.size(), 8u);
  EXPECT_EQ(recording.cut, 15u);
}

TEST(Recorder, ARecordingForgetsTheOneBefore) {
  start(100);
  add("first", SpanKind::kLap, 0, 1);
  stop();
  start(100);
  add("second", SpanKind::kLap, 0, 1);
  const Recording recording = stop();
  EXPECT_EQ(recording.names, std::vector<std::string>{"second"});
  EXPECT_EQ(recording.cut, 0u);
}

TEST(Recorder, AWorkerThatIsNotWantedRecordsNothing) {
  const ProfileStarted started = start(ProfileRequest{.wanted = false, .spans_max = 100});
  EXPECT_EQ(started.machine, machine_name());
  EXPECT_FALSE(recording());
  EXPECT_EQ(stop().size(), 0u);
}

TEST(Recorder, ADamagedRecordingIsSeen) {
  start(100);
  add("x", SpanKind::kLap, 0, 1);
  const Recording whole = stop();
  ASSERT_TRUE(whole.consistent());
  Recording damaged = whole;
  damaged.name[0] = 1;
  EXPECT_FALSE(damaged.consistent());
  damaged = whole;
  damaged.end_ns.clear();
  EXPECT_FALSE(damaged.consistent());
  damaged = whole;
  damaged.thread[0] = 7;
  EXPECT_FALSE(damaged.consistent());
}

}  // namespace
}  // namespace rl::profile
