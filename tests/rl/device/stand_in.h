// Tests of what runs on a device that is not the CPU, with one that every machine has:
// tests/support/stand_in_device.cpp.
#pragma once

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace rl::testing {

inline constexpr const char* kStandIn = "standin";

/// Opens the plugin, so that find_device() finds it without a search.
class DeviceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_NE(::dlopen(STARLING_BIN_DIR "/../tests/libtorch_standin.so", RTLD_NOW | RTLD_GLOBAL),
              nullptr)
        << ::dlerror();
  }
  // One of ATen's threads: several wait for each other by spinning, which takes minutes where other
  // tests run.
  DeviceTest() { at::set_num_threads(1); }
};

}  // namespace rl::testing
