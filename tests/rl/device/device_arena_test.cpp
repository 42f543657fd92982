// An arena of a device by pages.
#include "rl/model/device_arena.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/copy.h>

#include <cstdlib>

#include "rl/cuda/virtual_memory.h"
#include "rl/model/guarded.h"
#include "rl/model/pass_memory.h"
#include "stand_in.h"
#include "tests/rl/model/large_config.h"

namespace rl {
namespace {

using runtime::ErrorCode;

class DeviceArenaTest : public testing::DeviceTest {
 protected:
  static at::Device device() { return *find_device(testing::tested_device()); }
  /// Elements of a page.
  static std::int64_t page() {
    const auto memory =
        virtual_memory_of(testing::on_stand_in() ? testing::kStandIn : "cuda", /*index=*/0);
    EXPECT_TRUE(memory.ok()) << memory.status().to_string();
    return static_cast<std::int64_t>((*memory)->page_bytes() / sizeof(float));
  }
  static std::shared_ptr<DeviceArena> make(std::int64_t elements, const RangeSet& there) {
    auto arena = DeviceArena::make(device(), elements, there);
    EXPECT_TRUE(arena.ok()) << arena.status().to_string();
    return *arena;
  }
};

TEST_F(DeviceArenaTest, PagesComeAndGoBehindTheSameAddresses) {
  const std::int64_t of_page = page();
  const auto arena = make(4 * of_page, {{0, of_page}});
  EXPECT_EQ(arena->most(), of_page) << "what is there at first";
  arena->give_back({{0, 4 * of_page}});
  arena->release();
  arena->reset_most();
  EXPECT_EQ(arena->most(), 0);

  const at::Tensor view = arena->tensor().narrow(0, of_page, of_page);
  for (int time = 0; time < 2; ++time) {
    arena->take({{of_page, 2 * of_page}});
    const at::Tensor values = at::arange(of_page, at::kFloat) + time;
    view.copy_(values);
    EXPECT_TRUE(view.to(at::kCPU).equal(values));
    arena->give_back({{of_page, 2 * of_page}});
  }
  EXPECT_EQ(arena->most(), of_page);
}

TEST_F(DeviceArenaTest, APageOfTwoStaysWhileOneOfThemIsThere) {
  const std::int64_t of_page = page();
  const auto arena = make(2 * of_page, {});
  arena->give_back({{0, 2 * of_page}});
  const RangeSet first{{0, of_page / 2}}, second{{of_page / 2, 2 * of_page}};
  arena->take(first);
  arena->take(second);
  const at::Tensor values = at::arange(of_page / 2, at::kFloat);
  arena->elements().narrow(0, 0, of_page / 2).copy_(values);
  arena->give_back(second);
  EXPECT_TRUE(arena->tensor().narrow(0, 0, of_page / 2).to(at::kCPU).equal(values));
  arena->give_back(first);
  EXPECT_EQ(arena->most(), 2 * of_page);
}

TEST_F(DeviceArenaTest, ADeviceThatIsFullSaysSo) {
  if (!testing::on_stand_in()) GTEST_SKIP() << "the stand-in's memory can be set";
  const std::int64_t of_page = page();
  const auto arena = make(8 * of_page, {});
  arena->give_back({{0, 8 * of_page}});
  const std::string room = std::to_string(4 * of_page * static_cast<std::int64_t>(sizeof(float)));
  ::setenv("STARLING_STANDIN_BYTES", room.c_str(), 1);
  const runtime::Status all = guarded<void>("weights", [&] { arena->take({{0, 8 * of_page}}); });
  ::unsetenv("STARLING_STANDIN_BYTES");
  EXPECT_EQ(all.code(), ErrorCode::kResourceExhausted) << all.to_string();
}

TEST_F(DeviceArenaTest, WhatRanksExchangeGoesOverTheHost) {
  const ModelConfig config = testing::large_config(1);
  const Parameters random = Parameters::random(config, 1);
  const std::int64_t half = random.arena_size() / 2;
  auto paged = random.to_pages(device(), {{0, half}});
  ASSERT_TRUE(paged.ok()) << paged.status().to_string();
  const std::unique_ptr<PassMemory> memory = pass_memory_of(*paged, 0);
  const RangeSet first{{0, half}}, rest{{half, random.arena_size()}};
  const auto of = [](const at::Tensor& all, std::int64_t begin, std::int64_t end) {
    return all.narrow(0, begin, end - begin);
  };
  memory->bring_down(first);
  EXPECT_TRUE(std::equal(memory->host().begin(), memory->host().begin() + half,
                         random.arena().const_data_ptr<float>()));
  memory->close_host(first);
  memory->give_back({{0, random.arena_size()}});

  memory->take(rest);
  memory->open_host(rest);
  std::copy_n(random.arena().const_data_ptr<float>() + half, random.arena_size() - half,
              memory->host().begin() + half);
  memory->send_up(rest);
  EXPECT_TRUE(of(paged->arena(), half, random.arena_size())
                  .to(at::kCPU)
                  .equal(of(random.arena(), half, random.arena_size())));
  memory->give_back(rest);
  memory->take_zeros(first);
  EXPECT_EQ(of(paged->arena(), 0, half).abs().sum().item<float>(), 0.0F);
  memory->give_back(first);
}

}  // namespace
}  // namespace rl
