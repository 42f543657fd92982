#include "runtime/process/process_output.h"

#include <gtest/gtest.h>

#include <chrono>

#include "runtime/node/log_reader.h"
#include "runtime/process/log_file.h"
#include "tests/support/file_clock.h"
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

TEST(LogReader, GoesOnAfterARotation) {
  support::TemporaryFolder folder;
  LogFile log(folder.path() / "x.log", 100);
  std::string read;
  std::uint64_t file = 0, offset = 0;
  const auto read_on = [&] {
    while (true) {
      auto chunk = read_log_chunk(folder.path(), "x.log", file, offset);
      ASSERT_TRUE(chunk.ok()) << chunk.status().to_string();
      if (chunk->text.empty()) return;
      read += chunk->text;
      file = chunk->file;
      offset = chunk->next_offset;
    }
  };
  std::string written;
  for (int i = 100; i < 200; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    log.append(line);
    written += line;
    if (i % 7 == 0) read_on();
  }
  read_on();
  EXPECT_EQ(read, written);
  // From the oldest that is kept.
  read.clear();
  file = offset = 0;
  read_on();
  EXPECT_GT(read.size(), 100u);
  EXPECT_TRUE(written.ends_with(read)) << read;
  // What was rotated away before it, also for a reader that has fallen behind, and after the
  // writer's own end.
  EXPECT_EQ(read_log_chunk(folder.path(), "x.log", 0, 0)->position, written.size() - read.size());
  auto behind = read_log_chunk(folder.path(), "x.log", 0, 0);
  // Files of one tick may have the same number and birth.
  ASSERT_TRUE(support::await_file_clock());
  LogFile again(folder.path() / "x.log", 100);
  for (int i = 200; i < 250; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    again.append(line);
    written += line;
  }
  behind = read_log_chunk(folder.path(), "x.log", behind->file, behind->next_offset);
  ASSERT_TRUE(behind.ok()) << behind.status().to_string();
  EXPECT_EQ(behind->text, written.substr(behind->position, behind->text.size()));
  EXPECT_GT(behind->text.size(), 50u) << "it goes on with the oldest that is left";
  auto last = read_log_chunk(folder.path(), "x.log", behind->file, behind->next_offset);
  ASSERT_TRUE(last.ok()) << last.status().to_string();
  EXPECT_EQ(last->position, behind->position + behind->text.size());
  EXPECT_EQ(last->text, written.substr(last->position));
  // Its older half removed for room: the position does not come from there.
  std::filesystem::remove(folder.path() / "x.log.1");
  EXPECT_EQ(read_log_chunk(folder.path(), "x.log", 0, 0)->position, last->position);
  EXPECT_EQ(read_log_chunk(folder.path(), "../x.log", 0, 0).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_log_chunk(folder.path(), "y.log", 0, 0).status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace runtime
