// Memory of a CUDA device by pages, with a stand-in for the driver
// (tests/support/fake_cuda_memory.cpp).
#include "rl/cuda/cuda_memory.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "rl/cuda/plugin_memory.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;

std::string fake_driver() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_cuda_memory.so")
      .string();
}

class CudaMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = CudaMemory::open(0, fake_driver());
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    memory_ = *std::move(opened);
    page_ = memory_->page_bytes();
  }
  /// That the driver has given.
  static std::size_t pages() {
    void* const driver = ::dlopen(fake_driver().c_str(), RTLD_NOW);
    return reinterpret_cast<std::size_t (*)()>(::dlsym(driver, "fake_cuda_pages"))();
  }

  std::unique_ptr<CudaMemory> memory_;
  std::size_t page_ = 0;
};

TEST_F(CudaMemoryTest, MemoryIsPutBehindAddressesAndTakenAway) {
  const auto begin = memory_->reserve(4 * page_);
  ASSERT_TRUE(begin.ok()) << begin.status().to_string();
  auto* const first = static_cast<std::byte*>(*begin);
  ASSERT_TRUE(memory_->map(first + page_, 2 * page_).ok());
  std::memset(first + page_, 1, 2 * page_);
  memory_->unmap(first + page_, page_);
  EXPECT_EQ(static_cast<int>(first[2 * page_]), 1) << "each page goes alone";
  EXPECT_EQ(pages(), 2u) << "what was taken away is kept";
  ASSERT_TRUE(memory_->map(first, page_).ok());
  EXPECT_EQ(pages(), 2u) << "for the next one";
  memory_->unmap(first, page_);
  memory_->trim();
  EXPECT_EQ(pages(), 1u);
  memory_->unmap(first + 2 * page_, page_);
  memory_->trim();
  EXPECT_EQ(pages(), 0u);
  EXPECT_EQ(memory_->most_bytes(), 2 * page_);
  memory_->release(first, 4 * page_);
}

TEST_F(CudaMemoryTest, WhatFindsNoMemoryHasNone) {
  const support::ScopedVariable room("FAKE_CUDA_PAGES", "2");
  const auto begin = memory_->reserve(4 * page_);
  ASSERT_TRUE(begin.ok());
  const runtime::Status full = memory_->map(*begin, 3 * page_);
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(full.message().find("out of memory"), std::string::npos) << full.message();
  EXPECT_TRUE(memory_->map(*begin, 2 * page_).ok()) << "by what the first one had got";
  memory_->unmap(*begin, 2 * page_);
  memory_->trim();
  EXPECT_EQ(pages(), 0u);
  memory_->release(*begin, 4 * page_);
}

TEST_F(CudaMemoryTest, WhatTheDriverRefusesIsSaidWithItsWords) {
  const auto odd = memory_->reserve(page_ + 1);
  EXPECT_EQ(odd.status().code(), ErrorCode::kInternal);
  EXPECT_NE(odd.status().message().find("invalid argument"), std::string::npos);
  const auto begin = memory_->reserve(2 * page_);
  ASSERT_TRUE(begin.ok());
  ASSERT_TRUE(memory_->map(*begin, page_).ok());
  EXPECT_EQ(memory_->map(*begin, page_).code(), ErrorCode::kInternal) << "there is some already";
  memory_->unmap(*begin, page_);
  memory_->trim();
  memory_->release(*begin, 2 * page_);
}

TEST(CudaMemory, ALibraryWithoutTheFunctionsIsNamed) {
  const auto none = CudaMemory::open(0, "libno_such_driver.so.1");
  EXPECT_EQ(none.status().code(), ErrorCode::kUnimplemented);
  const auto old = CudaMemory::open(0, "libc.so.6");
  EXPECT_EQ(old.status().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(old.status().message().find("cuMemGetAllocationGranularity"), std::string::npos)
      << old.status().message();
}

TEST(PluginMemory, NamesTheFunctionThatAPluginLacks) {
  const auto none = PluginMemory::open("nosuchdevice");
  EXPECT_EQ(none.status().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(none.status().message().find("nosuchdevice_page_bytes"), std::string::npos)
      << none.status().message();
}

}  // namespace
}  // namespace rl
