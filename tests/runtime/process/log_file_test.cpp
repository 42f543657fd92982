#include "runtime/process/log_file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <optional>
#include <set>
#include <string>

#include "runtime/node/log_reader.h"
#include "runtime/process/file_lock.h"
#include "runtime/process/file_util.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

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

TEST(LogFile, IsLockedWhileItIsOpen) {
  support::TemporaryFolder folder;
  {
    LogFile log(folder.path() / "x.log", 100);
    log.append("x");
    EXPECT_TRUE(is_locked(folder.path() / "x.log"));
    log.append(std::string(100, 'y'));  // a new file
    EXPECT_TRUE(is_locked(folder.path() / "x.log"));
    EXPECT_FALSE(is_locked(folder.path() / "x.log.1"));
  }
  EXPECT_FALSE(is_locked(folder.path() / "x.log"));
}

TEST(LogFile, OneThatNothingWasWrittenToIsRemoved) {
  support::TemporaryFolder folder;
  { LogFile silent(folder.path() / "silent.log"); }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "silent.log"));
  LogFile(folder.path() / "loud.log").append("x");
  { LogFile again(folder.path() / "loud.log"); }
  EXPECT_EQ(*read_file(folder.path() / "loud.log", 100), "x");
}

TEST(LogFile, WhatIsCutSaysSoAndReadersGoOn) {
  support::TemporaryFolder folder;
  LogFile log(folder.path() / "x.log", 1000);
  for (int i = 0; i < 150; ++i) log.append("0123456789");
  auto before = read_log_chunk(folder.path(), "x.log", 0, 0);
  ASSERT_TRUE(before.ok()) << before.status().to_string();
  log.cut();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "x.log.1"));
  log.append("after");
  const std::string text = *read_file(folder.path() / "x.log", 1000);
  EXPECT_TRUE(text.starts_with("[500 bytes were removed from here")) << text;
  EXPECT_TRUE(text.ends_with("\nafter")) << text;
  auto after = read_log_chunk(folder.path(), "x.log", before->file, before->next_offset);
  ASSERT_TRUE(after.ok()) << after.status().to_string();
  EXPECT_EQ(after->text, text);
  EXPECT_EQ(after->position, 1500u) << "as many bytes of the log came before";
}

/// Gives what the test says.
struct FakeRoom final : LogRoom {
  bool admit(std::uint64_t bytes) override {
    asked += bytes;
    return admits;
  }
  std::uint64_t file_bytes_max() const override { return bytes_max; }
  void add(RoomLog& log) override { logs.insert(&log); }
  void remove(RoomLog& log) override { logs.erase(&log); }

  bool admits = true;
  std::uint64_t bytes_max = 1000;
  std::uint64_t asked = 0;
  std::set<RoomLog*> logs;
};

TEST(LogFile, WritesNoMoreThanItsRoomAdmits) {
  support::TemporaryFolder folder;
  FakeRoom room;
  LogFile log(folder.path() / "x.log", LogFile::kBytesMax, &room);
  log.append("before\n");
  EXPECT_EQ(room.asked, 7u);
  room.admits = false;
  log.append("lost\n");
  log.append("lost\n");
  EXPECT_EQ(log.lost_bytes(), 10u);
  room.admits = true;
  log.append("after\n");
  EXPECT_EQ(log.lost_bytes(), 0u);
  EXPECT_EQ(*read_file(folder.path() / "x.log", 1000),
            "before\n\n[10 bytes could not be written here]\nafter\n");
}

TEST(LogFile, BeginsAgainAtWhatItsRoomGivesAFile) {
  support::TemporaryFolder folder;
  FakeRoom room;
  room.bytes_max = 20;
  LogFile log(folder.path() / "x.log", 50, &room);
  for (int i = 0; i < 3; ++i) log.append("0123456789");
  EXPECT_EQ(log.bytes(), 10u);
  room.bytes_max = 1000;
  for (int i = 0; i < 5; ++i) log.append("0123456789");
  EXPECT_EQ(log.bytes(), 10u) << "and at its own bound";
}

TEST(LogFile, IsInItsRoomUntilEitherEnds) {
  support::TemporaryFolder folder;
  FakeRoom room;
  std::optional<LogFile> log(std::in_place, folder.path() / "x.log", LogFile::kBytesMax, &room);
  EXPECT_EQ(room.logs, std::set<RoomLog*>{&*log});
  log.reset();
  EXPECT_TRUE(room.logs.empty());
  log.emplace(folder.path() / "y.log", LogFile::kBytesMax, &room);
  log->leave_room();
  room.admits = false;
  log->append("x");
  EXPECT_EQ(log->bytes(), 1u);
  log.reset();
  EXPECT_EQ(room.logs.size(), 1u) << "what has left is not taken out";
}

}  // namespace
}  // namespace runtime
