#include "rl/model/device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include "rl/model/rope.h"
#include "rl/model/rope_on_device.h"
#include "stand_in.h"

namespace rl {
namespace {

using DeviceTest = testing::DeviceTest;

class StandInTest : public testing::DeviceTest {
 protected:
  void SetUp() override {
    if (!testing::on_stand_in()) GTEST_SKIP() << "a test of the stand-in itself";
  }
};

TEST_F(StandInTest, APluginsNameIsADevice) {
  const auto device = find_device(testing::kStandIn);
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  EXPECT_FALSE(device->is_cpu());
  const at::Tensor sum = (at::ones({3, 4}).to(*device) * 2).sum();
  EXPECT_EQ(sum.device(), *device);
  EXPECT_EQ(sum.item<float>(), 24.0F);
}

// Or else the tests below would not show what they are for.
TEST_F(StandInTest, TheHostMayNotTouchItsMemory) {
  const auto device = find_device(testing::kStandIn);
  ASSERT_TRUE(device.ok());
  const at::Tensor there = at::ones({8}).to(*device);
  EXPECT_DEATH(*static_cast<volatile float*>(there.mutable_data_ptr()) = 1.0F, "");
}

TEST_F(StandInTest, MemoryThatNothingWroteIsNotZero) {
  const at::Tensor there =
      at::empty({8}, at::TensorOptions(*find_device(testing::kStandIn)).dtype(at::kFloat));
  EXPECT_TRUE(there.isnan().all().item<bool>());
}

// What CUDA's kernels refuse, in the words of LibTorch; empty: it was taken.
template <class Compute>
std::string refusal(Compute compute) {
  try {
    compute();
    return "";
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
}

TEST_F(DeviceTest, OperatorsOfTensorsOnTwoDevicesAreRefused) {
  const at::Tensor there = at::ones({4, 3}).to(*find_device(testing::tested_device()));
  const at::Tensor here = at::ones({4, 3});
  const at::Tensor index = at::arange(4).unsqueeze(1).remainder(3);
  const std::string expected = "Expected all tensors to be on the same device";
  EXPECT_NE(refusal([&] { there.add(here); }).find(expected), std::string::npos);
  EXPECT_NE(refusal([&] { at::cat({there, here}); }).find(expected), std::string::npos);
  EXPECT_NE(refusal([&] { there.gather(1, index); }).find(expected), std::string::npos);
  EXPECT_EQ(refusal([&] { there.gather(1, index.to(there.device())); }), "");
}

TEST_F(DeviceTest, ScalarsAndIndicesMayComeFromTheHost) {
  const at::Tensor there = at::arange(4).to(at::kFloat).to(*find_device(testing::tested_device()));
  EXPECT_EQ((there * at::ones({})).sum().item<float>(), 6.0F);
  EXPECT_EQ((there + 1).sum().item<float>(), 10.0F);
  EXPECT_EQ(there.index({at::ones({1}, at::kLong)}).item<float>(), 1.0F);
}

TEST_F(DeviceTest, AGeneratorOfTheCpuIsRefused) {
  const at::Tensor there = at::ones({8}).to(*find_device(testing::tested_device()));
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(1);
  EXPECT_NE(refusal([&] { there.bernoulli_(0.5, generator); })
                .find("Expected a '" + std::string(testing::tested_device()) +
                      "' device type for generator but found 'cpu'"),
            std::string::npos);
}

TEST_F(DeviceTest, TablesOfAnglesAreCopiedThereOnce) {
  const at::Device device = *find_device(testing::tested_device());
  const Rope rope({}, 8);
  const auto tables = rope.tables(16);
  const auto there = device_tables(tables, device);
  EXPECT_EQ(there->cos.device(), device);
  EXPECT_EQ(device_tables(tables, device), there);
  EXPECT_EQ(there->sin.cpu()[3][1].item<float>(), tables->sin[3 * 4 + 1]);
  const auto here = device_tables(tables, at::kCPU);
  EXPECT_NE(here, there);
  EXPECT_TRUE(here->cos.equal(there->cos.cpu()));
}

TEST_F(StandInTest, SaysHowMuchMemoryItHas) {
  const at::Device device = *find_device(testing::kStandIn);
  const auto before = device_room(device);
  ASSERT_TRUE(before);
  const at::Tensor megabyte = at::empty({1 << 20}, at::TensorOptions(device).dtype(at::kByte));
  EXPECT_EQ(device_room(device)->free, before->free - (1 << 20));
  EXPECT_EQ(device_room(device)->total, before->total);
  EXPECT_FALSE(device_room(at::kCPU));
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
