#include "runtime/call/call_streams.h"

#include <gtest/gtest.h>

#include <memory>

namespace runtime {
namespace {

using StreamPtr = std::shared_ptr<StreamState>;

/// One that is not looked into.
StreamPtr any_stream() {
  const auto owner = std::make_shared<int>();
  return StreamPtr(owner, reinterpret_cast<StreamState*>(owner.get()));
}

TEST(CallStreams, KnowsAStreamByItsCallWhileItIsRead) {
  CallStreams streams;
  EXPECT_EQ(streams.find(1), nullptr);
  const StreamPtr first = any_stream();
  StreamPtr second = any_stream();
  streams.add(1, first);
  streams.add(7, second);
  EXPECT_EQ(streams.find(1), first);
  EXPECT_EQ(streams.find(7), second);
  EXPECT_EQ(streams.find(2), nullptr);
  second.reset();
  EXPECT_EQ(streams.find(7), nullptr) << "its reader has given up";
  const StreamPtr third = any_stream();
  streams.add(8, third);
  EXPECT_EQ(streams.find(7), nullptr);
  EXPECT_EQ(streams.find(1), first);
  EXPECT_EQ(streams.find(8), third);
}

TEST(CallStreams, KeepsNoStream) {
  CallStreams streams;
  StreamPtr stream = any_stream();
  const std::weak_ptr<StreamState> watched = stream;
  streams.add(1, stream);
  stream.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace runtime
