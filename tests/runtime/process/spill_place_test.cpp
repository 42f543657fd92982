#include "runtime/process/spill_place.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

/// A process that has a spill folder with an object in it, in its own PID namespace where that can
/// be had.
class SpillingProcess {
 public:
  SpillingProcess(const fs::path& parent, NodeId node) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::unshare(CLONE_NEWPID);
      auto place = SpillPlace::create(parent, node);
      if (place.ok()) std::ofstream((*place)->path() / "1.spill") << "object";
      const char answer = place.ok() ? 'y' : 'n';
      (void)!::write(ready[1], &answer, 1);
      ::pause();
      ::_exit(0);
    }
    char answer = 'n';
    (void)!::read(ready[0], &answer, 1);
    ::close(ready[0]), ::close(ready[1]);
    is_there_ = answer == 'y';
  }
  ~SpillingProcess() { kill(); }
  bool is_there() const { return is_there_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  bool is_there_ = false;
};

class SpillPlaceTest : public ::testing::Test {
 protected:
  fs::path of(NodeId node) const { return parent_ / ("spill-" + node.hex()); }

  support::TemporaryFolder folder_;
  const fs::path parent_ = folder_.path() / "spilled";
};

TEST_F(SpillPlaceTest, GoesWithItsNode) {
  const NodeId node = NodeId::random();
  {
    auto place = SpillPlace::create(parent_, node);
    ASSERT_TRUE(place.ok()) << place.status().to_string();
    EXPECT_EQ((*place)->path(), of(node));
    struct stat info {};
    ASSERT_EQ(::stat(of(node).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::ofstream((*place)->path() / "7.spill") << "object";
  }
  EXPECT_FALSE(fs::exists(of(node)));
}

TEST_F(SpillPlaceTest, WhatAKilledNodeLeftGoesWithTheNextOneAndALivingOnesStays) {
  const NodeId dead = NodeId::random(), living = NodeId::random();
  SpillingProcess dying(parent_, dead), other(parent_, living);
  ASSERT_TRUE(dying.is_there() && other.is_there());
  remove_dead_spills(parent_);
  EXPECT_TRUE(fs::exists(of(dead) / "1.spill")) << "it lives";
  dying.kill();
  EXPECT_TRUE(fs::exists(of(dead) / "1.spill"));
  auto next = SpillPlace::create(parent_, NodeId::random());
  ASSERT_TRUE(next.ok()) << next.status().to_string();
  EXPECT_FALSE(fs::exists(of(dead)));
  EXPECT_TRUE(fs::exists(of(living) / "1.spill"));
}

TEST_F(SpillPlaceTest, ALockThatACleanerTookAwayIsPutBack) {
  const NodeId node = NodeId::random();
  auto place = SpillPlace::create(parent_, node);
  ASSERT_TRUE(place.ok()) << place.status().to_string();
  std::ofstream((*place)->path() / "7.spill") << "object";
  ASSERT_TRUE(fs::remove(of(node) / "lock"));
  ASSERT_TRUE((*place)->refresh().ok());
  EXPECT_TRUE(is_locked(of(node) / "lock"));
  remove_dead_spills(parent_);
  EXPECT_TRUE(fs::exists(of(node) / "7.spill")) << "it lives";
  fs::remove_all(of(node));
  ASSERT_TRUE((*place)->refresh().ok());
  place->reset();
  EXPECT_FALSE(fs::exists(of(node)));
}

TEST_F(SpillPlaceTest, NothingUnmarkedIsRemoved) {
  const auto make = [&](const fs::path& folder) {
    fs::create_directories(folder);
    fs::permissions(folder, fs::perms::owner_all);
    std::ofstream(folder / "1.spill") << "x";
  };
  const fs::path unlocked = of(NodeId::random());  // no lock in it
  const fs::path misnamed = parent_ / "spill-results";
  const fs::path open = of(NodeId::random());  // others could have put anything there
  make(unlocked), make(misnamed), make(open);
  std::ofstream(misnamed / "lock") << "";
  std::ofstream(open / "lock") << "";
  fs::permissions(open, fs::perms::all);
  make(folder_.path() / "elsewhere");
  std::ofstream(folder_.path() / "elsewhere" / "lock") << "";
  fs::create_directory_symlink(folder_.path() / "elsewhere", of(NodeId::random()));
  const fs::path busy = of(NodeId::random());  // a dead node's, with a file that is none of ours
  make(busy);
  std::ofstream(busy / "lock") << "";
  std::ofstream(busy / "thesis.tex") << "x";
  remove_dead_spills(parent_);
  for (const fs::path& kept : {unlocked / "1.spill", misnamed / "1.spill", open / "1.spill",
                               folder_.path() / "elsewhere" / "1.spill", busy / "thesis.tex"})
    EXPECT_TRUE(fs::exists(kept)) << kept;
  EXPECT_FALSE(fs::exists(busy / "1.spill"));
}

TEST_F(SpillPlaceTest, AnotherUsersIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  const fs::path theirs = of(NodeId::random());
  fs::create_directories(theirs);
  fs::permissions(theirs, fs::perms::owner_all);
  std::ofstream(theirs / "lock") << "";
  std::ofstream(theirs / "1.spill") << "x";
  ASSERT_EQ(::chown(theirs.c_str(), 65534, 65534), 0);
  remove_dead_spills(parent_);
  EXPECT_TRUE(fs::exists(theirs / "1.spill"));
}

TEST_F(SpillPlaceTest, AFolderInAnotherUsersIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  fs::create_directories(parent_);
  ASSERT_EQ(::chown(parent_.c_str(), 65534, 65534), 0);
  const auto place = SpillPlace::create(parent_, NodeId::random());
  ASSERT_FALSE(place.ok());
  EXPECT_NE(place.status().message().find("belongs to user 65534"), std::string::npos)
      << place.status().message();
  EXPECT_TRUE(fs::is_empty(parent_));
}

TEST_F(SpillPlaceTest, AFolderThatCannotBeIsNamed) {
  std::ofstream(folder_.path() / "file") << "x";
  const auto place = SpillPlace::create(folder_.path() / "file" / "sub", NodeId::random());
  ASSERT_FALSE(place.ok());
  EXPECT_NE(place.status().message().find((folder_.path() / "file" / "sub").string()),
            std::string::npos)
      << place.status().message();
}

}  // namespace
}  // namespace runtime
