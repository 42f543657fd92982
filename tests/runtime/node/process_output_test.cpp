#include "runtime/node/process_output.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <chrono>
#include <thread>

#include "runtime/node/file_util.h"
#include "runtime/node/log_keeper.h"
#include "runtime/node/log_reader.h"
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
  LogFile log(folder.path() / "x.log", 100);
  for (int i = 0; i < 30; ++i) log.append("0123456789");
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "x.log"), 100u);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "x.log.1"), 100u);
  // A log is continued, not begun again.
  LogFile again(folder.path() / "x.log", 1000);
  again.append("more");
  EXPECT_EQ(read_file(folder.path() / "x.log", 1000)->size(), 104u);
}

TEST(LogFile, AFullDiskLosesLinesAndSaysSo) {
  support::TemporaryFolder folder;
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "needs the right to mount";
  {
    LogFile log(folder.path() / "x.log");
    const std::string line(1000, 'x');
    for (int i = 0; i < 100; ++i) log.append(line + "\n");
    EXPECT_GT(log.lost_bytes(), 30'000u);
    std::filesystem::resize_file(folder.path() / "x.log", 0);  // room again
    log.append("after\n");
    EXPECT_EQ(log.lost_bytes(), 0u);
    const std::string text = *read_file(folder.path() / "x.log", 1 << 20);
    EXPECT_NE(text.find("bytes could not be written here]\nafter\n"), std::string::npos) << text;
  }
  ::umount2(folder.path().c_str(), MNT_DETACH);
}

TEST(LogKeeper, RemovesTheOldestOfWhatHasEnded) {
  support::TemporaryFolder folder;
  const auto exists = [&](const char* name) {
    return std::filesystem::exists(folder.path() / name);
  };
  const auto age = [&](const char* name, int hours) {
    std::filesystem::last_write_time(
        folder.path() / name,
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  LogFile open(folder.path() / "open.log");
  open.append(std::string(1000, 'x'));
  for (const char* name : {"old.log", "new.log", "open.log.1", "node.log"})
    LogFile(folder.path() / name).append(std::string(1000, 'x'));
  age("open.log", 9);
  age("node.log", 8);
  age("open.log.1", 7);
  age("old.log", 6);
  trim_logs(folder.path(), 5000);
  EXPECT_TRUE(exists("open.log.1"));  // enough room
  trim_logs(folder.path(), 3500);
  EXPECT_FALSE(exists("open.log.1") || exists("old.log"));
  EXPECT_TRUE(exists("new.log") && exists("open.log") && exists("node.log"));
  trim_logs(folder.path(), 0);
  EXPECT_FALSE(exists("new.log"));
  EXPECT_TRUE(exists("open.log") && exists("node.log"));
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
  // What was rotated away before it, also for whoever has fallen behind, and after the writer's own
  // end.
  EXPECT_EQ(read_log_chunk(folder.path(), "x.log", 0, 0)->position, written.size() - read.size());
  auto behind = read_log_chunk(folder.path(), "x.log", 0, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(
      20));  // files of one tick of the kernel's clock may have the same number and birth
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
