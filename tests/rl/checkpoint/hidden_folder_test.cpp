// Folders that are on their way to a checkpoint's name. Whole checkpoints are in
// checkpoint_test.cpp.
#include "rl/checkpoint/hidden_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

class HiddenFolderTest : public ::testing::Test {
 protected:
  // One as a killed process leaves it behind.
  fs::path leave_dead(std::int64_t step) const {
    const fs::path folder = hidden_name(root_.path(), step);
    fs::create_directories(folder / "checkpoint");
    std::ofstream(folder / "writer.lock") << "";
    return folder;
  }

  const support::TemporaryFolder root_;
};

TEST_F(HiddenFolderTest, GoesWithItsObjectAndWithWhatIsInIt) {
  auto made = HiddenFolder::make(root_.path(), 7);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_TRUE(fs::is_empty(made->content()));
  EXPECT_TRUE(made->content().parent_path().filename().string().starts_with(".global_step_7."));
  std::optional<HiddenFolder> moved(std::move(*made));
  std::ofstream(moved->content() / "weights") << "seven";
  made->remove();
  EXPECT_TRUE(fs::exists(moved->content() / "weights")) << "what was moved from has none";
  moved.reset();
  EXPECT_TRUE(fs::is_empty(root_.path()));
}

TEST_F(HiddenFolderTest, WhatWasMovedOutOfItStays) {
  auto made = HiddenFolder::make(root_.path(), 7);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  std::ofstream(made->content() / "weights") << "seven";
  fs::rename(made->content(), root_.path() / "global_step_7");
  made->remove();
  EXPECT_TRUE(fs::exists(root_.path() / "global_step_7" / "weights"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root_.path()), fs::directory_iterator()), 1);
}

TEST_F(HiddenFolderTest, OnlyThoseOfDeadWritersAreRemoved) {
  const auto alive = HiddenFolder::make(root_.path(), 3);
  ASSERT_TRUE(alive.ok()) << alive.status().to_string();
  const fs::path dead = leave_dead(3);
  const fs::path unmarked = hidden_name(root_.path(), 4);  // it may be another program's
  fs::create_directories(unmarked / "checkpoint");
  remove_dead_hidden_folders(root_.path());
  EXPECT_TRUE(fs::exists(alive->content()));
  EXPECT_TRUE(fs::exists(unmarked));
  EXPECT_FALSE(fs::exists(dead));
}

// A lock in it does not make a folder ours that has another name.
TEST_F(HiddenFolderTest, OtherNamesAndLinksStay) {
  const fs::path dead = leave_dead(5);
  std::vector<fs::path> others;
  for (const char* name :
       {"global_step_5", ".global_step_x.01234567.tmp", ".global_step_5.0123456.tmp",
        ".global_step_5.0123456G.tmp", ".global_step_.01234567.tmp", ".global_step_5.01234567"}) {
    others.push_back(root_.path() / name);
    fs::copy(dead, others.back(), fs::copy_options::recursive);
  }
  const support::TemporaryFolder elsewhere;
  fs::copy(dead, elsewhere.path() / "kept", fs::copy_options::recursive);
  others.push_back(root_.path() / ".global_step_6.01234567.tmp");
  fs::create_directory_symlink(elsewhere.path() / "kept", others.back());
  remove_dead_hidden_folders(root_.path());
  EXPECT_FALSE(fs::exists(dead));
  for (const fs::path& other : others) EXPECT_TRUE(fs::exists(other / "writer.lock")) << other;
}

TEST_F(HiddenFolderTest, AFolderThatCannotBeMadeIsNamed) {
  const auto made = HiddenFolder::make(root_.path() / "gone", 1);
  support::expect_failure(made.status(), runtime::ErrorCode::kNotFound, {root_.file("gone")});
}

}  // namespace
}  // namespace rl
