#include "rl/metrics/log_file.h"

#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <string>
#include <vector>

#include "rl/metrics/held_back.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

class LogFileTest : public ::testing::Test {
 protected:
  std::string read() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  support::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "deep" / "log";
};

TEST_F(LogFileTest, WhatIsWrittenIsThereAtOnce) {
  auto log = LogFile::create(path_);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_TRUE(log->write("one\n").ok());
  EXPECT_EQ(read(), "one\n");
}

TEST_F(LogFileTest, CreateEmptiesAndOpenAppends) {
  ASSERT_TRUE(LogFile::create(path_)->write("one\n").ok());
  ASSERT_TRUE(LogFile::open(path_)->write("two\n").ok());
  EXPECT_EQ(read(), "one\ntwo\n");
  ASSERT_TRUE(LogFile::create(path_).ok());
  EXPECT_EQ(read(), "");
}

TEST_F(LogFileTest, AWriteThatIsCutLeavesNothingBehindAndTheNextMaySucceed) {
  auto log = LogFile::create(path_);
  ASSERT_TRUE(log.ok() && log->write("one\n").ok());
  {
    const support::FileSizeLimit limit(6);
    const runtime::Status cut = log->write("second\n");
    EXPECT_FALSE(cut.ok());
    EXPECT_NE(cut.message().find(path_.string()), std::string::npos) << cut.message();
    EXPECT_EQ(read(), "one\n");
  }
  EXPECT_TRUE(log->write("second\n").ok());
  EXPECT_EQ(read(), "one\nsecond\n");
}

TEST_F(LogFileTest, AFolderThatCannotBeIsNamed) {
  std::ofstream(folder_.file("file")) << "x";
  const auto log = LogFile::create(folder_.path() / "file" / "log");
  EXPECT_NE(log.status().message().find("file/log"), std::string::npos) << log.status().message();
}

TEST(WriteInOrder, KeepsWhatStandsBehindTheFirstFailure) {
  std::deque<int> items{1, 2, 3};
  std::vector<int> written;
  bool full = true;
  const auto write = [&](int item) {
    if (full && item == 2) return runtime::resource_exhausted("disk full");
    written.push_back(item);
    return runtime::Status();
  };
  EXPECT_EQ(write_in_order(items, write).code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_EQ(items, (std::deque<int>{2, 3}));
  full = false;
  EXPECT_TRUE(write_in_order(items, write).ok());
  EXPECT_EQ(written, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(items.empty());
}

}  // namespace
}  // namespace rl
