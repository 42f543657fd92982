#include "runtime/core/sync_folder.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(SyncFolder, SyncsAFolder) {
  EXPECT_FALSE(sync_folder(std::filesystem::temp_directory_path()));
}

TEST(SyncFolder, NamesWhatIsWrong) {
  const auto folder = std::filesystem::temp_directory_path() / "starling-no-such-folder";
  EXPECT_EQ(sync_folder(folder), std::errc::no_such_file_or_directory);
  EXPECT_EQ(sync_folder("/dev/null"), std::errc::not_a_directory);
}

TEST(SyncFolder, ToleratesAFileSystemThatCannot) {
  EXPECT_FALSE(sync_folder("/proc/self"));  // fsync() of a folder says EINVAL there
}

}  // namespace
}  // namespace runtime
