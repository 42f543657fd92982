#include "rl/model/device.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include "stand_in.h"

namespace rl {
namespace {

using DeviceTest = testing::DeviceTest;

TEST_F(DeviceTest, APluginsNameIsADevice) {
  const auto device = find_device(testing::kStandIn);
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  EXPECT_FALSE(device->is_cpu());
  const at::Tensor sum = (at::ones({3, 4}).to(*device) * 2).sum();
  EXPECT_EQ(sum.device(), *device);
  EXPECT_EQ(sum.item<float>(), 24.0F);
}

// Or else the tests below would not show what they are for.
TEST_F(DeviceTest, TheHostMayNotTouchItsMemory) {
  const auto device = find_device(testing::kStandIn);
  ASSERT_TRUE(device.ok());
  const at::Tensor there = at::ones({8}).to(*device);
  EXPECT_DEATH(*static_cast<volatile float*>(there.mutable_data_ptr()) = 1.0F, "");
}

TEST_F(DeviceTest, WhatIsNoDeviceIsNamed) {
  EXPECT_EQ(find_device("GPU0").status().code(), runtime::ErrorCode::kInvalidArgument);
  const auto other = find_device("nosuch");
  EXPECT_EQ(other.status().code(), runtime::ErrorCode::kUnavailable);
  EXPECT_NE(other.status().message().find("libtorch_nosuch.so"), std::string::npos)
      << other.status().to_string();
}

}  // namespace
}  // namespace rl
