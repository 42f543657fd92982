#include "rl/comm/pulse.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace rl {
namespace {

TEST(PulseRecorder, WhateverIsDoneIsAStep) {
  PulseRecorder recorder;
  EXPECT_EQ(recorder.read(), Pulse());
  recorder.at("layer 1");
  EXPECT_EQ(recorder.read(), (Pulse{.steps = 1, .where = "layer 1"}));
  EXPECT_EQ(recorder.begin("sum"), 1u);
  EXPECT_EQ(recorder.read(), (Pulse{.steps = 1, .operations = 1, .waiting = true, .where = "sum"}))
      << "a collective that begins has done nothing yet";
  recorder.step();
  EXPECT_EQ(recorder.read().steps, 2u);
  EXPECT_TRUE(recorder.read().waiting);
  recorder.end();
  EXPECT_EQ(recorder.read(), (Pulse{.steps = 3, .operations = 1, .where = "sum"}));
  EXPECT_EQ(recorder.begin("another"), 2u);
}

TEST(PulseRecorder, ThreadsCountTogether) {
  PulseRecorder recorder;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int step = 0; step < 1000; ++step) recorder.step();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recorder.read().steps, 4000u);
}

}  // namespace
}  // namespace rl
