#include "runtime/core/backoff.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesUpToItsBoundAndBeginsAgain) {
  Backoff backoff;
  for (const auto pause : {10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1280ms})
    EXPECT_EQ(backoff.next(), pause);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(backoff.next(), 1280ms);
  backoff.reset();
  EXPECT_EQ(backoff.next(), 10ms);
  EXPECT_EQ(backoff.next(), 20ms);
}

}  // namespace
}  // namespace runtime
