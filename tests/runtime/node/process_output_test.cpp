#include "runtime/node/process_output.h"

#include <gtest/gtest.h>

#include "runtime/node/file_util.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using Lines = std::vector<std::string>;

TEST(LineSplitter, CutsAcrossPieces) {
  LineSplitter splitter;
  EXPECT_EQ(splitter.feed("one\ntw"), Lines{"one"});
  EXPECT_EQ(splitter.feed("o\r\n\nth"), (Lines{"two", ""}));
  EXPECT_EQ(splitter.finish(), Lines{"th"});
  EXPECT_EQ(splitter.finish(), Lines{});
}

TEST(LineSplitter, CutsEndlessLines) {
  LineSplitter splitter;
  std::string endless(LineSplitter::kLineBytesMax * 2 + 5, 'x');
  EXPECT_EQ(splitter.feed(endless).size(), 2u);
  EXPECT_EQ(splitter.finish(), Lines{"xxxxx"});
  // One that ends exactly at the limit is one line and no empty one.
  EXPECT_EQ(splitter.feed(std::string(LineSplitter::kLineBytesMax, 'y') + "\n").size(), 1u);
}

TEST(Tail, KeepsTheEnd) {
  Tail tail;
  EXPECT_EQ(tail.last_lines(3), "");
  tail.append("a\nb\nc\nd\n");
  EXPECT_EQ(tail.last_lines(2), "c\nd");
  EXPECT_EQ(tail.last_lines(10), "a\nb\nc\nd");
  EXPECT_EQ(tail.last_lines(0), "");
  tail.append(std::string(Tail::kBytes + 100, 'x') + "\nend\n");
  EXPECT_EQ(tail.last_lines(1), "end");
  EXPECT_LE(tail.last_lines(5).size(), Tail::kBytes);
}

TEST(LogFile, RotatesAtItsLimit) {
  support::TemporaryFolder folder;
  auto log = LogFile::open(folder.path() / "x.log", 100);
  ASSERT_TRUE(log.ok());
  for (int i = 0; i < 30; ++i) log->append("0123456789");
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "x.log"), 100u);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "x.log.1"), 100u);
  // A log is continued, not begun again.
  auto again = LogFile::open(folder.path() / "x.log", 1000);
  again->append("more");
  EXPECT_EQ(read_file(folder.path() / "x.log", 1000)->size(), 104u);
}

}  // namespace
}  // namespace runtime
