#include "rl/checkpoint/folder_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>

namespace rl {
namespace {

class FolderLockTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("starling-lock-" + std::to_string(::getpid()));
};

TEST_F(FolderLockTest, OneRunAtATime) {
  auto first = FolderLock::acquire(folder_ / "run");
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto second = FolderLock::acquire(folder_ / "run");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), runtime::ErrorCode::kUnavailable);
  EXPECT_NE(second.status().message().find("pid " + std::to_string(::getpid())), std::string::npos)
      << second.status().message();
  EXPECT_NE(second.status().message().find((folder_ / "run").string()), std::string::npos);
  EXPECT_TRUE(FolderLock::acquire(folder_ / "other").ok());
  *first = FolderLock();
  EXPECT_TRUE(FolderLock::acquire(folder_ / "run").ok()) << "free again";
}

TEST_F(FolderLockTest, AFileInTheWayIsNamed) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "file") << "x";
  const auto lock = FolderLock::acquire(folder_ / "file");
  ASSERT_FALSE(lock.ok());
  EXPECT_NE(lock.status().message().find((folder_ / "file").string()), std::string::npos)
      << lock.status().message();
}

}  // namespace
}  // namespace rl
