#include "rl/weights/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "test_files.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

TEST(AtomicFile, NothingIsSeenBeforeCommit) {
  testing::TempFolder folder;
  const auto path = folder.write("f", "old");
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("new").ok());
    EXPECT_EQ(testing::read_file(path), "old");
  }  // abandoned
  EXPECT_EQ(testing::read_file(path), "old");
  EXPECT_EQ(folder.file_count(), 1u);
  ASSERT_TRUE(write_file_atomically(path, "new").ok());
  EXPECT_EQ(testing::read_file(path), "new");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, TwoWritersOfOnePathDoNotMix) {
  testing::TempFolder folder;
  const auto path = folder.path() / "f";
  auto first = AtomicFile::create(path);
  auto second = AtomicFile::create(path);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(first->write("1").ok() && second->write("2").ok());
  ASSERT_TRUE(first->commit().ok() && second->commit().ok());
  EXPECT_EQ(testing::read_file(path), "2");
}

TEST(AtomicFile, ATemporaryFileIsRemovedOnceItsWriterIsDead) {
  testing::TempFolder folder;
  for (const char* theirs : {"results.tmp.3999999.2", "x.starling-tmp-1", ".starling-tmp-0badcafe"})
    folder.write(theirs, "x");
  auto living = AtomicFile::create(folder.path() / "a");
  ASSERT_TRUE(living.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto dead = AtomicFile::create(folder.path() / "b");
    ::_exit(dead.ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(folder.file_count(), 5u);
  remove_dead_temporaries(folder.path());
  EXPECT_EQ(folder.file_count(), 4u);
  EXPECT_TRUE(living->commit().ok());
  EXPECT_EQ(folder.file_count(), 4u);
}

TEST(AtomicFile, ShortWriteIsResourceExhausted) {
  testing::TempFolder folder;
  auto file =
      AtomicFile::create(folder.path() / "f");  // no expected size: the write itself must find out
  ASSERT_TRUE(file.ok());
  const support::FileSizeLimit limit(1000);
  const runtime::Status status = file->write(std::string(4096, 'x'));
  EXPECT_EQ(status.code(), runtime::ErrorCode::kResourceExhausted);
}

// Past the page cache, where the folder's file system can: in blocks, with an end that fills none,
// whatever the pieces are.
TEST(AtomicFile, LargeFilesHoldWhatWasWritten) {
  testing::TempFolder folder;
  const auto path = folder.path() / "f";
  std::string bytes((33U << 20) + 4097, 'x');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>((i * 2654435761U) >> 24);
  for (const std::size_t piece : {std::size_t{1'000'003}, bytes.size()}) {
    auto file = AtomicFile::create(path, bytes.size());
    ASSERT_TRUE(file.ok()) << file.status().to_string();
    AtomicFile moved = std::move(*file);
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece)
      ASSERT_TRUE(moved.write(std::string_view(bytes).substr(begin, piece)).ok());
    ASSERT_TRUE(moved.commit().ok());
    EXPECT_TRUE(testing::read_file(path) == bytes) << "in pieces of " << piece;
  }
}

TEST(AtomicFile, WhatIsNoRegularFileStaysWhatItIs) {
  const support::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "file", link = folder.path() / "link",
                              pipe = folder.path() / "pipe";
  std::ofstream(file) << "old";
  std::filesystem::create_symlink("file", link);
  ASSERT_TRUE(write_file_atomically(link, "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  std::string text;
  std::getline(std::ifstream(file) >> std::ws, text);
  EXPECT_EQ(text, "new");

  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(write_file_atomically(pipe, "through").ok());
  char bytes[16] = {};
  EXPECT_EQ(::read(reader, bytes, sizeof bytes), 7);
  EXPECT_STREQ(bytes, "through");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(AtomicFile::create(pipe).status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(write_file_atomically("/dev/null", "gone").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(write_file_atomically("/dev/full", "x").code(), runtime::ErrorCode::kResourceExhausted);
}

TEST(AtomicFile, MissingFolderIsNamed) {
  auto file = AtomicFile::create("/no/such/folder/f");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), runtime::ErrorCode::kNotFound);
  EXPECT_NE(file.status().message().find("/no/such/folder/f"), std::string::npos);
}

}  // namespace
}  // namespace rl
