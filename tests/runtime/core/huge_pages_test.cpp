#include "runtime/core/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace runtime {
namespace {

/// Fresh memory.
class HugePagesTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 32 << 20;

  HugePagesTest() {
    void* const mapped =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    memory_ = static_cast<char*>(mapped);
  }
  ~HugePagesTest() override { ::munmap(memory_, kBytes); }

  /// Whether the system is asked for huge pages there.
  static bool is_advised(const char* at) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    std::ifstream file("/proc/self/smaps");
    bool is_here = false;
    for (std::string line; std::getline(file, line);) {
      std::uintptr_t begin = 0, end = 0;
      if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
        is_here = begin <= address && address < end;
      if (is_here && line.starts_with("VmFlags:")) return line.find(" hg") != std::string::npos;
    }
    return false;
  }

  char* memory_ = nullptr;
};

TEST_F(HugePagesTest, OnlyWholeHugePagesOfTheRangeAreAskedFor) {
  prefer_huge_pages(memory_ + 4096, 16 << 20);
  if (!is_advised(memory_ + (8 << 20))) GTEST_SKIP() << "this system has no huge pages";
  EXPECT_FALSE(is_advised(memory_)) << "before it";
  EXPECT_FALSE(is_advised(memory_ + kBytes - 4096)) << "behind it";
}

TEST_F(HugePagesTest, SmallRangesAreLeftAlone) {
  prefer_huge_pages(memory_, (8 << 20) - 1);
  EXPECT_FALSE(is_advised(memory_ + (4 << 20)));
}

TEST_F(HugePagesTest, NoBytesAreChanged) {
  std::memset(memory_, 7, kBytes);
  prefer_huge_pages(memory_, kBytes);
  prefer_huge_pages(nullptr, kBytes);  // a hint: what cannot be is no error
  for (std::size_t i = 0; i < kBytes; i += 4096) ASSERT_EQ(memory_[i], 7) << i;
}

}  // namespace
}  // namespace runtime
