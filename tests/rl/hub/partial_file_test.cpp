#include "rl/hub/partial_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "tests/support/expect_failure.h"
#include "tests/support/file_bytes.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using runtime::Result;
using runtime::Status;
using support::content_of;
using support::expect_failure;

class PartialFileTest : public ::testing::Test {
 protected:
  PartialFile opened(std::uint64_t bytes_max) const {
    Result<PartialFile> file = PartialFile::open(path_, bytes_max);
    EXPECT_TRUE(file.ok()) << file.status().to_string();
    return std::move(*file);
  }
  static Status append(PartialFile& file, const std::string& text) {
    return file.append(std::as_bytes(std::span(text)));
  }

  static constexpr const char* kSha256OfAbc =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  support::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "e.incomplete";
};

TEST_F(PartialFileTest, GrowsAtItsEndAndKnowsTheHash) {
  PartialFile file = opened(3);
  EXPECT_EQ(file.bytes(), 0u);
  for (const char* part : {"a", "", "bc"}) EXPECT_TRUE(append(file, part).ok());
  EXPECT_EQ(file.bytes(), 3u);
  EXPECT_EQ(content_of(path_), "abc");
  EXPECT_EQ(file.sha256(), kSha256OfAbc);
}

TEST_F(PartialFileTest, GoesOnWhereAnEarlierOneStopped) {
  std::ofstream(path_) << "ab";
  PartialFile file = opened(3);
  EXPECT_EQ(file.bytes(), 2u);
  EXPECT_TRUE(append(file, "c").ok());
  EXPECT_EQ(content_of(path_), "abc");
  EXPECT_EQ(file.sha256(), kSha256OfAbc);
}

TEST_F(PartialFileTest, HashesWhatIsThereHoweverLong) {
  const std::string long_text = support::drawn_bytes((2 << 20) + 17);
  std::ofstream(path_, std::ios::binary) << long_text;
  PartialFile found = opened(long_text.size());
  EXPECT_EQ(found.bytes(), long_text.size());
  const std::string of_found = found.sha256();
  std::filesystem::remove(path_);
  PartialFile written = opened(long_text.size());
  ASSERT_TRUE(append(written, long_text).ok());
  EXPECT_EQ(of_found, written.sha256());
}

TEST_F(PartialFileTest, WhatIsLongerThanAnnouncedBeginsAgain) {
  std::ofstream(path_) << "four";
  PartialFile file = opened(3);
  EXPECT_EQ(file.bytes(), 0u);
  EXPECT_EQ(content_of(path_), "");
  EXPECT_TRUE(append(file, "abc").ok());
  EXPECT_EQ(file.sha256(), kSha256OfAbc);
}

TEST_F(PartialFileTest, RefusesMoreThanAnnouncedAndWritesNoneOfIt) {
  PartialFile file = opened(3);
  ASSERT_TRUE(append(file, "ab").ok());
  expect_failure(append(file, "cd"), ErrorCode::kInvalidArgument, {"e.incomplete", "3 bytes"});
  EXPECT_EQ(content_of(path_), "ab");
  EXPECT_TRUE(append(file, "c").ok());
  expect_failure(append(file, "d"), ErrorCode::kInvalidArgument, {"more than"});
  EXPECT_EQ(file.sha256(), kSha256OfAbc);
}

TEST_F(PartialFileTest, RestartForgetsTheBytesAndTheirHash) {
  PartialFile file = opened(3);
  ASSERT_TRUE(append(file, "xyz").ok());
  ASSERT_TRUE(file.restart().ok());
  EXPECT_EQ(file.bytes(), 0u);
  EXPECT_TRUE(append(file, "abc").ok());
  EXPECT_EQ(content_of(path_), "abc");
  EXPECT_EQ(file.sha256(), kSha256OfAbc);
}

TEST_F(PartialFileTest, FinishGivesItItsName) {
  PartialFile file = opened(3);
  ASSERT_TRUE(append(file, "abc").ok());
  PartialFile moved = std::move(file);
  ASSERT_TRUE(moved.finish(folder_.path() / "e").ok());
  EXPECT_EQ(content_of(folder_.path() / "e"), "abc");
  EXPECT_FALSE(std::filesystem::exists(path_));
  PartialFile next = opened(1);
  expect_failure(next.finish(folder_.path() / "none" / "e"), ErrorCode::kNotFound, {"none/e"});
}

TEST_F(PartialFileTest, WhatFitsOnAFullDiskStaysForTheNextTime) {
  const std::string all = support::drawn_bytes(5000);
  {
    PartialFile file = opened(all.size());
    const support::FileSizeLimit limit(4096);
    expect_failure(append(file, all), ErrorCode::kResourceExhausted, {"HF_HOME", "5000 bytes"});
    EXPECT_EQ(file.bytes(), 4096u);
  }
  PartialFile file = opened(all.size());
  EXPECT_EQ(file.bytes(), 4096u);
  EXPECT_TRUE(append(file, all.substr(4096)).ok());
  EXPECT_EQ(content_of(path_), all);
}

TEST_F(PartialFileTest, APathThatCannotBeOpenedIsNamed) {
  const Result<PartialFile> file = PartialFile::open(folder_.path() / "none" / "e", 1);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("none/e"), std::string::npos) << file.status().message();
}

}  // namespace
}  // namespace rl
