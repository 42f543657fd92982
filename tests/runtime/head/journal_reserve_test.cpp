#include "runtime/head/journal_reserve.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <fstream>

#include "runtime/core/disk_space.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class JournalReserveTest : public ::testing::Test {
 protected:
  bool mount(const char* size) {
    return mounted_ = ::mount("none", disk_.path().c_str(), "tmpfs", 0, size) == 0;
  }
  ~JournalReserveTest() override {
    if (mounted_) ::umount2(disk_.path().c_str(), MNT_DETACH);
  }
  std::uint64_t free_bytes() const { return disk_space(disk_.path())->free_bytes; }
  /// Takes all that is free.
  void fill() const { std::ofstream(disk_.path() / "filler") << std::string(64 * kMiB, 'x'); }

  support::TemporaryFolder disk_;
  bool mounted_ = false;
};

TEST_F(JournalReserveTest, TakesAQuarterOfASmallDiskAndGivesItBackInPieces) {
  if (!mount("size=8m")) GTEST_SKIP() << "needs the right to mount";
  JournalReserve reserve(disk_.path());
  EXPECT_TRUE(reserve.refill());
  EXPECT_EQ(reserve.bytes(), 2 * kMiB);
  EXPECT_EQ(free_bytes(), 6 * kMiB) << "no other writer may take it";
  fill();
  EXPECT_EQ(free_bytes(), 0u);
  EXPECT_FALSE(reserve.refill()) << "the disk has no room besides";
  ASSERT_TRUE(reserve.release(4096));
  EXPECT_GE(free_bytes(), 2 * 4096u);
  EXPECT_GE(reserve.bytes(), kMiB) << "a piece at a time";
  while (reserve.release(100'000)) {
  }
  EXPECT_EQ(reserve.bytes(), 0u);
  EXPECT_EQ(free_bytes(), 2 * kMiB);
  fill();
  EXPECT_FALSE(reserve.refill());
  std::filesystem::remove(disk_.path() / "filler");
  EXPECT_TRUE(reserve.refill());
  EXPECT_EQ(reserve.bytes(), 2 * kMiB) << "again whole";
}

TEST_F(JournalReserveTest, TheNextHeadHasWhatTheOneBeforeLeft) {
  if (!mount("size=8m")) GTEST_SKIP() << "needs the right to mount";
  { EXPECT_TRUE(JournalReserve(disk_.path()).refill()); }
  fill();
  JournalReserve next(disk_.path());
  EXPECT_EQ(next.bytes(), 2 * kMiB);
  EXPECT_TRUE(next.release(1));
}

TEST_F(JournalReserveTest, TakesNoMoreThanItsLimit) {
  if (!mount("size=64m")) GTEST_SKIP() << "needs the right to mount";
  JournalReserve reserve(disk_.path());
  EXPECT_TRUE(reserve.refill());
  EXPECT_EQ(reserve.bytes(), JournalReserve::kBytesMax);
}

}  // namespace
}  // namespace runtime
