#include "runtime/process/file_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "runtime/process/cache_folder.h"
#include "runtime/process/content_hash.h"
#include "runtime/process/file_lock.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1 << 20;

/// A cache on a disk of 8 MiB.
class FileCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::mount("none", disk_.path().c_str(), "tmpfs", 0, "size=8m,mode=0700") != 0)
      GTEST_SKIP() << "needs the right to mount";
    ASSERT_TRUE(cache_.make().ok());
  }
  void TearDown() override { ::umount2(disk_.path().c_str(), MNT_DETACH); }

  /// As a cache names what it has: "files/old" -> "files/<a hash>".
  static fs::path named(const fs::path& name) {
    fs::path found;
    for (const fs::path& part : name) {
      ContentHash hash;
      hash.add(part.string());
      const bool is_second = !found.empty() && !found.has_parent_path();
      found /= is_second ? fs::path(hash.finish()) : part;
    }
    return found;
  }
  /// A file of a cache that was used this many days ago.
  fs::path make(const fs::path& name, std::uint64_t bytes, int days) const {
    return make_at(disk_.path() / named(name), bytes, days);
  }
  static fs::path make_at(const fs::path& file, std::uint64_t bytes, int days) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << std::string(bytes, 'x') << std::flush;
    const time_t then = 1'700'000'000 - 86400 * days;
    const timespec times[2] = {{then, 0}, {then, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
    return file;
  }
  Status store(const std::string& name, std::uint64_t bytes, const FileCache::Keeps& keeps = {}) {
    if (Status status = cache_.make(); !status.ok()) return status;
    const fs::path part = FileCache::part_of(cache_.folder() / name);
    auto file = cache_.begin(part, 0600, keeps);
    if (!file.ok()) return file.status();
    Status status = cache_.write(file->get(), std::string(bytes, 'n'), 0, part, keeps);
    if (status.ok())
      fs::rename(part, cache_.folder() / name);
    else
      fs::remove(part);
    return status;
  }

  support::TemporaryFolder disk_;
  const FileCache cache_{{.folder = disk_.path() / "files", .others = {disk_.path() / "programs"}}};
};

TEST_F(FileCacheTest, AFullDiskTakesWhatWasUsedLongestAgo) {
  const fs::path oldest = make("files/oldest", 3 * kMiB, 9), old = make("files/old", kMiB, 5),
                 young = make("files/young", 2 * kMiB, 1);
  ASSERT_TRUE(store("new", 3 * kMiB).ok());
  EXPECT_EQ(fs::file_size(cache_.folder() / "new"), 3 * kMiB);
  EXPECT_FALSE(fs::exists(oldest));
  EXPECT_TRUE(fs::exists(old) && fs::exists(young)) << "no more than was needed";
}

TEST_F(FileCacheTest, WhatIsInUseOrKeptStaysAndTheDiskIsNamed) {
  const fs::path used = make("files/used", 3 * kMiB, 9), kept = make("files/kept", 4 * kMiB, 8);
  const auto lock = FileLock::shared(used);
  ASSERT_TRUE(lock.ok()) << lock.status().to_string();
  const Status full = store("new", 3 * kMiB, [&](const fs::path& file) { return file == kept; });
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  for (const std::string& named : {cache_.folder().string(), "disk at " + disk_.path().string(),
                                   std::string("STARLING_CACHE")})
    EXPECT_NE(full.message().find(named), std::string::npos) << full.message();
  EXPECT_TRUE(fs::exists(used) && fs::exists(kept));
  ASSERT_TRUE(store("new", 3 * kMiB).ok()) << "kept no more";
  EXPECT_TRUE(fs::exists(used));
  EXPECT_FALSE(fs::exists(kept));
}

TEST_F(FileCacheTest, AnotherCacheOnTheDiskGivesWayToo) {
  ASSERT_TRUE(make_cache_folder(disk_.path() / "programs").ok());
  const fs::path program = make("programs/hash/driver", 4 * kMiB, 3);
  const fs::path fresh = disk_.path() / named("programs/hash2/driver");
  fs::create_directories(fresh.parent_path());
  std::ofstream(fresh) << std::string(kMiB, 'x') << std::flush;  // about to be started, maybe
  ASSERT_TRUE(store("new", 6 * kMiB).ok());
  EXPECT_FALSE(fs::exists(program.parent_path()));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(FileCacheTest, OnlyWantOfRoomRemovesFiles) {
  const fs::path old = make("files/old", kMiB, 5);
  const Status status = cache_.with_room(1, {}, [] { return errno_status(EMFILE, "opening x"); });
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(status, errno_status(EMFILE, "opening x"));
  EXPECT_TRUE(fs::exists(old));
}

TEST_F(FileCacheTest, TakesHalfOfWhatTheDiskHas) {
  std::vector<fs::path> files;
  for (int i = 0; i < 5; ++i) files.push_back(make("files/" + std::to_string(i), kMiB - 4096, i));
  cache_.trim();
  EXPECT_TRUE(fs::exists(files[3]));
  EXPECT_FALSE(fs::exists(files[4]));
  std::ofstream(disk_.path() / "filler") << std::string(3 * kMiB, 'f') << std::flush;
  cache_.trim();  // 4 MiB taken and 1 free
  EXPECT_TRUE(fs::exists(files[1]));
  EXPECT_FALSE(fs::exists(files[2]));
}

TEST_F(FileCacheTest, WhatWasBegunGoesOnceItsNodeIsDead) {
  const fs::path part = FileCache::part_of(cache_.folder() / std::string(64, 'a'));
  {
    auto begun = cache_.begin(part, 0600);
    ASSERT_TRUE(begun.ok()) << begun.status().to_string();
    cache_.trim();
    EXPECT_TRUE(fs::exists(part));
  }
  cache_.trim();
  EXPECT_FALSE(fs::exists(part));
}

// What a user may have in the folder that STARLING_CACHE names, at the places of our caches.
TEST_F(FileCacheTest, AFolderWithoutAMarkIsRefusedAndKeepsAllThatIsInIt) {
  const fs::path folder = disk_.path() / "user";
  const FileCache cache({.folder = folder / "files", .others = {folder / "programs"}});
  std::vector<fs::path> theirs;
  for (const std::string& name :
       {std::string("files/thesis.doc"), "files/" + std::string(64, 'a'),
        "files/" + std::string(64, 'b') + ".part-0badcafe", std::string("files/notes.part-1.txt"),
        std::string("programs/mine/src"), "programs/" + std::string(32, 'c') + "/driver"})
    theirs.push_back(make_at(folder / name, kMiB / 2, 40));
  cache.trim();
  FileCache({.folder = folder / "programs", .depth = 2, .bytes_max = 0}).trim();
  for (const Status& refused : {cache.make(), cache.check()}) {
    EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
    for (const std::string& part : {cache.folder().string() + " is not empty",
                                    std::string("STARLING_CACHE"), std::string(kCacheMark)})
      EXPECT_NE(refused.message().find(part), std::string::npos) << refused.message();
  }
  const Status full = cache.with_room(kMiB, {}, [] { return errno_status(ENOSPC, "writing"); });
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  for (const fs::path& file : theirs) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_FALSE(fs::exists(cache.folder() / kCacheMark));
}

TEST_F(FileCacheTest, OnlyWhatIsNamedByAHashIsRemovedOfACache) {
  const fs::path folder = cache_.folder();
  std::vector<fs::path> theirs;
  for (const char* name : {"thesis.doc", "my.part-draft", "notes.part-1.txt", "x.part-0badcafe"})
    theirs.push_back(make_at(folder / name, kMiB, 40));
  const fs::path ours = make("files/ours", kMiB, 1);
  FileCache({.folder = folder, .bytes_max = 0}).trim();
  EXPECT_FALSE(fs::exists(ours));
  const Status full = cache_.with_room(kMiB, {}, [] { return errno_status(ENOSPC, "writing"); });
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  for (const fs::path& file : theirs) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_TRUE(fs::exists(folder / kCacheMark));
}

}  // namespace
}  // namespace runtime
