#include "rl/hub/hub_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/blocking_thread.h"
#include "tests/support/file_bytes.h"
#include "tests/support/in_child.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::Result;
using support::content_of;

class HubCacheTest : public ::testing::Test {
 protected:
  static HubName named(const std::string& text) { return *HubName::parse(text); }

  void put(const std::filesystem::path& path, const std::string& bytes) const {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }

  const std::string commit_ = std::string(39, 'a') + "0";
  const std::string later_commit_ = std::string(39, 'b') + "1";
  support::TemporaryFolder root_;
  HubCache cache_{root_.path(), "org/name"};
};

TEST_F(HubCacheTest, HasTheLayoutOfHuggingFacesTools) {
  EXPECT_EQ(cache_.folder(), root_.path() / "models--org--name");
  EXPECT_EQ(cache_.blob("e"), cache_.folder() / "blobs" / "e");
  EXPECT_EQ(cache_.incomplete("e"), cache_.folder() / "blobs" / "e.incomplete");
  EXPECT_EQ(cache_.snapshot("c"), cache_.folder() / "snapshots" / "c");
  EXPECT_EQ(cache_.lock("e"), root_.path() / ".locks" / "models--org--name" / "e.lock");
  EXPECT_EQ(HubCache(root_.path(), "gpt2").folder(), root_.path() / "models--gpt2");
}

TEST_F(HubCacheTest, ACommitStandsForItself) {
  EXPECT_EQ(cache_.known_commit(named("org/name@" + commit_)), commit_);
  ASSERT_TRUE(cache_.remember_commit(named("org/name@" + commit_), commit_).ok());
  EXPECT_FALSE(std::filesystem::exists(cache_.folder() / "refs")) << "nothing to remember";
}

TEST_F(HubCacheTest, RemembersWhereABranchWasSeenLast) {
  EXPECT_EQ(cache_.known_commit(named("org/name")), std::nullopt);
  ASSERT_TRUE(cache_.remember_commit(named("org/name"), commit_).ok());
  EXPECT_EQ(cache_.known_commit(named("org/name")), commit_);
  ASSERT_TRUE(cache_.remember_commit(named("org/name"), later_commit_).ok());
  EXPECT_EQ(cache_.known_commit(named("org/name")), later_commit_);
  EXPECT_EQ(cache_.known_commit(named("org/name@v1")), std::nullopt) << "each has its own";
  ASSERT_TRUE(cache_.remember_commit(named("org/name@refs/pr/3"), commit_).ok());
  EXPECT_EQ(content_of(cache_.folder() / "refs" / "refs" / "pr" / "3"), commit_);
}

TEST_F(HubCacheTest, ARefWithoutACommitIsUnknown) {
  const std::filesystem::path ref = cache_.folder() / "refs" / "main";
  put(ref, commit_ + "\n");
  EXPECT_EQ(cache_.known_commit(named("org/name")), commit_) << "other tools end the line";
  for (const std::string& damaged : {std::string(), commit_.substr(1), commit_ + "0",
                                     std::string(40, 'x'), "../" + commit_.substr(3)}) {
    put(ref, damaged);
    EXPECT_EQ(cache_.known_commit(named("org/name")), std::nullopt) << damaged;
  }
}

TEST_F(HubCacheTest, PreparesFoldersAndLeavesTheTagOfOthers) {
  ASSERT_TRUE(cache_.prepare().ok());
  EXPECT_TRUE(std::filesystem::is_directory(cache_.folder() / "blobs"));
  const std::filesystem::path tag = root_.path() / "CACHEDIR.TAG";
  EXPECT_TRUE(content_of(tag).starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
  put(tag, "of another tool");
  ASSERT_TRUE(cache_.prepare().ok());
  EXPECT_EQ(content_of(tag), "of another tool");
}

TEST_F(HubCacheTest, AFolderThatCannotBeMadeNamesTheVariables) {
  put(root_.path() / "models--org--name", "a file in the way");
  for (const runtime::Status& status : {cache_.prepare(), cache_.link(commit_, "a", "e"),
                                        cache_.remember_commit(named("org/name"), commit_)}) {
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("HF_HUB_CACHE"), std::string::npos) << status.message();
  }
}

TEST_F(HubCacheTest, LinksFollowTheFolderWhereItIsMoved) {
  put(cache_.blob("e1"), "one");
  ASSERT_TRUE(cache_.link(commit_, "config.json", "e1").ok());
  ASSERT_TRUE(cache_.link(commit_, "templates/tool/use.jinja", "e1").ok());
  std::filesystem::rename(cache_.folder(), root_.path() / "moved");
  const std::filesystem::path snapshot = root_.path() / "moved" / "snapshots" / commit_;
  EXPECT_EQ(content_of(snapshot / "config.json"), "one");
  EXPECT_EQ(content_of(snapshot / "templates" / "tool" / "use.jinja"), "one");
}

TEST_F(HubCacheTest, ALinkStaysUnlessItsBlobIsGone) {
  put(cache_.blob("e1"), "one");
  put(cache_.blob("e2"), "two");
  const std::filesystem::path file = cache_.snapshot(commit_) / "config.json";
  ASSERT_TRUE(cache_.link(commit_, "config.json", "e1").ok());
  ASSERT_TRUE(cache_.link(commit_, "config.json", "e2").ok());
  EXPECT_EQ(content_of(file), "one");
  std::filesystem::remove(cache_.blob("e1"));
  ASSERT_TRUE(cache_.link(commit_, "config.json", "e2").ok());
  EXPECT_EQ(content_of(file), "two");
  std::filesystem::remove(file);
  put(file, "a copy, for want of links");
  ASSERT_TRUE(cache_.link(commit_, "config.json", "e2").ok());
  EXPECT_EQ(content_of(file), "a copy, for want of links");
}

TEST_F(HubCacheTest, ALockIsWaitedForUntilItsHolderLetsGo) {
  std::optional<BlobLock> held;
  {
    Result<BlobLock> first = BlobLock::take(cache_.lock("e"));
    ASSERT_TRUE(first.ok()) << first.status().to_string();
    held.emplace(std::move(*first));
  }  // what a lock was moved from holds nothing
  EXPECT_TRUE(BlobLock::take(cache_.lock("other")).ok()) << "a lock is one blob's";
  std::atomic<bool> taken{false};
  support::BlockingThread waiting;
  std::thread other([&] {
    waiting.begin();
    const Result<BlobLock> second = BlobLock::take(cache_.lock("e"));
    EXPECT_TRUE(second.ok()) << second.status().to_string();
    taken = true;
  });
  EXPECT_TRUE(waiting.is_blocked());
  EXPECT_FALSE(taken);
  held.reset();
  other.join();
  EXPECT_TRUE(taken);
}

TEST_F(HubCacheTest, TheLockOfAProcessThatEndedIsFree) {
  const auto take_and_end = [&] {
    const Result<BlobLock> lock = BlobLock::take(cache_.lock("e"));
    ::_exit(lock.ok() ? 0 : 1);  // without the destructor
    return 1;
  };
  EXPECT_EQ(support::in_child(take_and_end), 0);
  EXPECT_TRUE(BlobLock::take(cache_.lock("e")).ok());
}

TEST_F(HubCacheTest, ALockThatCannotBeMadeIsAnError) {
  std::filesystem::create_directories(cache_.lock("e"));
  const Result<BlobLock> lock = BlobLock::take(cache_.lock("e"));
  ASSERT_FALSE(lock.ok());
  EXPECT_NE(lock.status().message().find("e.lock"), std::string::npos) << lock.status().message();
}

}  // namespace
}  // namespace rl
