#include "runtime/core/disk_space.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(DiskSpace, KeepsAnEighthFreeAndSixtyFourMebibytesAtMost) {
  EXPECT_EQ(kept_free_bytes({8 * kMiB, 0}), kMiB);
  EXPECT_EQ(kept_free_bytes({512 * kMiB, 0}), 64 * kMiB);
  EXPECT_EQ(kept_free_bytes({1 << 30, 0}), 64 * kMiB);
  EXPECT_EQ(kept_free_bytes({}), 0u);
}

TEST(DiskSpace, AShareCountsWhatIsTakenAlready) {
  EXPECT_EQ(share_of({100, 40}, 0, 4), 10u);
  EXPECT_EQ(share_of({100, 30}, 10, 4), 10u) << "what was taken within it changes nothing";
  EXPECT_EQ(share_of({100, 10}, 10, 4), 5u) << "others took some";
}

TEST(DiskSpace, IsThatOfTheDiskThatAFolderIsOnOrWillBe) {
  support::TemporaryFolder folder;
  const std::filesystem::path disk = folder.path() / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "needs the right to mount";
  std::filesystem::create_directory(disk / "sub");
  for (const auto& path : {disk, disk / "sub", disk / "not/there/yet"}) {
    const auto space = disk_space(path);
    ASSERT_TRUE(space.ok()) << space.status().to_string();
    EXPECT_EQ(*space, (DiskSpace{2 * kMiB, 2 * kMiB})) << path;
  }
  std::ofstream(disk / "file") << std::string(kMiB, 'x') << std::flush;
  EXPECT_EQ(disk_space(disk)->free_bytes, kMiB);
  EXPECT_EQ(disk_text(disk / "sub"), (disk / "sub").string() + " (disk at " + disk.string() +
                                         ": 2097152 bytes, 1048576 free)");
  EXPECT_NE(disk_space(folder.path())->bytes, 2 * kMiB);
  ::umount2(disk.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace runtime
