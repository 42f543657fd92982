// Spilled extents as files: round trips, damaged and missing files, cleanup of the folder.
#include "runtime/store/spill_folder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace runtime::object_detail {
namespace {

namespace fs = std::filesystem;
using support::expect_failure;

class SpillFolderTest : public ::testing::Test {
 protected:
  SpillFolderTest() { open(); }

  void open() {
    auto made = SpillFolder::open(path_);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    folder_ = std::move(*made);
  }
  static std::vector<std::byte> bytes_of(std::size_t size, unsigned seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed);
    return bytes;
  }
  // Of that many bytes of the extent.
  Result<std::vector<std::byte>> read(std::uint64_t extent, std::size_t size) {
    std::vector<std::byte> bytes(size);
    const Status status = folder_->read(extent, bytes);
    if (!status.ok()) return status;
    return bytes;
  }
  fs::path file(const std::string& name) const { return path_ / name; }

  const support::TemporaryFolder root_;
  const fs::path path_ = root_.path() / "made" / "spilled";
  std::unique_ptr<SpillFolder> folder_;
};

TEST_F(SpillFolderTest, EachExtentComesBackAsItWasWrittenLast) {
  const std::vector<std::size_t> sizes = {0, 1, 31, 4096, 100'003};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_TRUE(folder_->write(i, bytes_of(sizes[i], 200)).ok());
    ASSERT_TRUE(folder_->write(i, bytes_of(sizes[i], static_cast<unsigned>(i))).ok());
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto bytes = read(i, sizes[i]);
    ASSERT_TRUE(bytes.ok()) << sizes[i] << ": " << bytes.status().to_string();
    EXPECT_EQ(*bytes, bytes_of(sizes[i], static_cast<unsigned>(i))) << sizes[i];
  }
}

TEST_F(SpillFolderTest, TheFileOfAnotherExtentIsNotTaken) {
  ASSERT_TRUE(folder_->write(1, bytes_of(500, 0)).ok());
  fs::rename(file("1.spill"), file("2.spill"));
  expect_failure(read(2, 500).status(), ErrorCode::kObjectLost,
                 {file("2.spill").string(), "damaged"});
}

TEST_F(SpillFolderTest, AFileOfOtherBytesIsNotTaken) {
  ASSERT_TRUE(folder_->write(1, bytes_of(500, 0)).ok());
  std::fstream(file("1.spill"), std::ios::in | std::ios::out | std::ios::binary).put('\x7f');
  expect_failure(read(1, 500).status(), ErrorCode::kObjectLost,
                 {file("1.spill").string(), "damaged"});
}

TEST_F(SpillFolderTest, AFileThatIsNotThereInFullIsNamed) {
  ASSERT_TRUE(folder_->write(1, bytes_of(500, 0)).ok());
  // Its last byte is of what tells it from a damaged one.
  fs::resize_file(file("1.spill"), fs::file_size(file("1.spill")) - 1);
  expect_failure(read(1, 500).status(), ErrorCode::kObjectLost,
                 {file("1.spill").string(), "end early"});
  folder_->remove(1);
  EXPECT_FALSE(fs::exists(file("1.spill")));
  folder_->remove(1);  // no file: nothing to do
  expect_failure(read(1, 500).status(), ErrorCode::kObjectLost,
                 {file("1.spill").string(), "cannot be read", std::strerror(ENOENT)});
}

TEST_F(SpillFolderTest, AFailedWriteLeavesNoFileAndIsNotTheNextOnesFailure) {
  folder_->fail_next(ENOSPC);
  expect_failure(folder_->write(1, bytes_of(500, 0)), ErrorCode::kResourceExhausted,
                 {"500 bytes", path_.string(), std::strerror(ENOSPC), "--spill-dir"});
  EXPECT_FALSE(fs::exists(file("1.spill")));
  folder_->fail_next(EIO);
  const Status broken = folder_->write(1, bytes_of(500, 0));
  expect_failure(broken, ErrorCode::kResourceExhausted, {std::strerror(EIO)});
  EXPECT_EQ(broken.message().find("--spill-dir"), std::string::npos) << "that would not help";
  EXPECT_TRUE(folder_->write(1, bytes_of(500, 0)).ok());

  folder_->fail_next(EIO);
  expect_failure(read(1, 500).status(), ErrorCode::kObjectLost, {std::strerror(EIO)});
  EXPECT_TRUE(read(1, 500).ok());
}

TEST_F(SpillFolderTest, WhatADeadStoreLeftGoesAndOtherFilesStay) {
  ASSERT_TRUE(folder_->write(1, bytes_of(500, 0)).ok());
  fs::copy_file(file("1.spill"), root_.path() / "left");
  folder_.reset();
  EXPECT_FALSE(fs::exists(path_)) << "nothing else was in it";

  fs::create_directories(path_);
  fs::copy_file(root_.path() / "left", file("1.spill"));
  std::ofstream(file("notes.txt")) << "of its user";
  open();
  EXPECT_FALSE(fs::exists(file("1.spill")));
  ASSERT_TRUE(folder_->write(2, bytes_of(500, 0)).ok());
  folder_.reset();
  EXPECT_FALSE(fs::exists(file("2.spill")));
  EXPECT_TRUE(fs::exists(file("notes.txt")));
}

TEST_F(SpillFolderTest, IsItsUsersAlone) {
  folder_.reset();
  fs::create_directories(path_);
  fs::permissions(path_, fs::perms::all);
  open();
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_all);
  ASSERT_TRUE(folder_->write(1, bytes_of(5, 0)).ok());
  EXPECT_EQ(fs::status(file("1.spill")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SpillFolderTest, AFileInItsPlaceIsNamed) {
  const fs::path taken = root_.path() / "taken";
  std::ofstream(taken) << "a file";
  expect_failure(SpillFolder::open(taken).status(), ErrorCode::kUnavailable,
                 {"spill folder " + taken.string()});
  EXPECT_TRUE(fs::is_regular_file(taken));
}

}  // namespace
}  // namespace runtime::object_detail
