#include "rl/weights/page_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "runtime/transport/file_descriptor.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

TEST(PageCache, ADescriptorKeepsItsOtherFlags) {
  const support::TemporaryFolder folder;
  const runtime::FileDescriptor file(
      ::open(folder.file("f").c_str(), O_RDWR | O_CREAT | O_APPEND, 0666));
  ASSERT_TRUE(file);
  EXPECT_FALSE(is_past_cache(file.get()));
  const bool can = set_past_cache(file.get(), true);
  EXPECT_EQ(is_past_cache(file.get()), can) << "where the file system cannot it stays as it was";
  EXPECT_NE(::fcntl(file.get(), F_GETFL) & O_APPEND, 0);
  EXPECT_TRUE(set_past_cache(file.get(), false));
  EXPECT_FALSE(is_past_cache(file.get()));
  EXPECT_NE(::fcntl(file.get(), F_GETFL) & O_APPEND, 0);
}

TEST(PageCache, WhatIsNoDescriptorIsNotPastIt) {
  EXPECT_FALSE(set_past_cache(-1, true));
  EXPECT_FALSE(set_past_cache(-1, false));
  EXPECT_FALSE(is_past_cache(-1));
}

TEST(PageCache, BlocksAreAlignedForDirectAccess) {
  for (const std::size_t bytes : {4096, 12288, 1 << 20}) {
    const DirectBlock block = allocate_direct_block(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % 4096, 0u) << bytes;
  }
}

}  // namespace
}  // namespace rl
