// Tests of what runs on a device that is not the CPU. They use one that every machine has
// (tests/support/stand_in_device.cpp), or the one that STARLING_TEST_DEVICE names (cuda).
#pragma once

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "rl/model/device.h"

namespace rl::testing {

inline constexpr const char* kStandIn = "standin";

/// The device that the tests run on.
inline const char* tested_device() {
  const char* named = std::getenv("STARLING_TEST_DEVICE");
  return named != nullptr && *named != '\0' ? named : kStandIn;
}

inline bool on_stand_in() { return std::string_view(tested_device()) == kStandIn; }

/// Opens the device before anything computes, as a worker does.
class DeviceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (on_stand_in()) {
      ASSERT_NE(::dlopen(STARLING_BIN_DIR "/../tests/libtorch_standin.so", RTLD_NOW | RTLD_GLOBAL),
                nullptr)
          << ::dlerror();
    }
    const auto device = find_device(tested_device());
    ASSERT_TRUE(device.ok()) << device.status().to_string();
  }
  // One of ATen's threads: several wait for each other by spinning, which takes minutes where other
  // tests run.
  DeviceTest() { at::set_num_threads(1); }
};

}  // namespace rl::testing
