// The disk under the journal is full; a node is killed that had spilled objects.
#include "disks_fixture.h"

#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

TEST_F(DisksTest, AFullDiskUnderTheJournalRefusesWhatIsNewAndForgetsNothing) {
  const std::filesystem::path disk = folder_.path() / "disk";
  make_network(3);
  if (IsSkipped()) return;
  if (!mount_small(disk, "12m")) GTEST_SKIP() << "nothing can be mounted here";
  const ClusterOptions options{.machines = 3,
                               .durable = false,
                               .arguments = {"--num-cpus", "4"},
                               .head_arguments = {"--journal", (disk / "journal").string()}};
  cluster_ = std::make_unique<Cluster>(*network_, folder_.path(), options);
  ASSERT_TRUE(cluster_->start().ok());
  begin_load(1, {.tallies = 2, .per_second = 20});
  begin_load(2, {.tallies = 2, .per_second = 20});
  ASSERT_TRUE(eventually([&] { return count_ok(history(), Op::kPut, 0, INT64_MAX) > 10; }, 40s));
  fill_disk(disk);
  const std::int64_t full = now_us();
  // What still fits between two blocks is written; then no more.
  ASSERT_TRUE(eventually(
      [&] {
        for (const Event& event : history().events) {
          if (event.op == Op::kPut && event.begin > full &&
              event.code == ErrorCode::kResourceExhausted)
            return true;
        }
        return false;
      },
      40s))
      << history().excerpt(INT64_MAX - 1, 30);
  const std::int64_t refused = now_us();
  support::hold_for(2s);              // under the load
  ::kill(cluster_->head(), SIGKILL);  // and it comes back on a full disk
  support::hold_for(3s);              // and runs on it, under the load
  const std::int64_t freed = now_us();
  std::filesystem::remove(disk / "filler");
  ASSERT_TRUE(eventually(
      [&] {
        return first_ok(history(), Op::kPut, freed) > 0 &&
               first_ok(history(), Op::kCreate, freed) > 0 &&
               first_ok(history(), Op::kAdd, freed) > 0;
      },
      40s))
      << history().excerpt(INT64_MAX - 1, 30);
  end_loads();
  const History asked = history();
  for (const Event& event : asked.events) {
    if (event.op == Op::kEcho) {
      EXPECT_TRUE(event.ok()) << event.to_string();
    }
    if (event.op == Op::kPut && event.code == ErrorCode::kResourceExhausted) {
      EXPECT_NE(event.text.find("journal"), std::string::npos) << event.text;
    }
  }
  EXPECT_GT(count_ok(asked, Op::kEcho, refused, freed), 100)
      << "calls between actors need no journal";
  EXPECT_EQ(cluster_->members(2), 3);
  expect_promises_kept(2);
}

TEST_F(DisksTest, WhatAKilledNodeHadSpilledGoesWhenTheNextOneStarts) {
  const std::filesystem::path spilled = folder_.path() / "spilled";
  start({.machines = 3,
         .arguments = {"--num-cpus", "4", "--object-store-memory", "32MiB", "--spill-dir",
                       spilled.string(), "--spill-limit", "1GiB"}});
  if (IsSkipped()) return;
  const auto folders = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(spilled))
      found.push_back(entry.path());
    return found;
  };
  ASSERT_EQ(folders().size(), 3u) << "one a node";
  const auto objects = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(spilled)) {
      if (entry.path().extension() == ".spill") found.push_back(entry.path());
    }
    return found;
  };
  const auto filling = cluster_->launch(2, {own_program(), "--fill", "40", "4"});
  ASSERT_TRUE(eventually([&] { return objects().size() >= 3; }, 60s)) << filling->output();
  cluster_->kill_node(2);
  ASSERT_FALSE(objects().empty());
  const std::filesystem::path dead = objects().front().parent_path();
  EXPECT_TRUE(std::filesystem::exists(dead));
  const std::vector<std::filesystem::path> before = folders();
  expect_started(2);
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(objects().empty());
  for (const std::filesystem::path& living : before) {
    EXPECT_EQ(std::filesystem::exists(living), living != dead) << living;
  }
  EXPECT_EQ(folders().size(), 3u);
}

}  // namespace
}  // namespace runtime::test
