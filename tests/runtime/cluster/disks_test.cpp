// The disk under the journal is full.
#include "disks_fixture.h"

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
  std::this_thread::sleep_for(2s);
  fill_disk(disk);
  const std::int64_t full = now_us();
  // What still fits between two blocks is written; then no more.
  ASSERT_TRUE(eventually(40s, [&] {
    for (const Event& event : history().events) {
      if (event.op == Op::kPut && event.begin > full && event.code == ErrorCode::kResourceExhausted)
        return true;
    }
    return false;
  })) << history().excerpt(INT64_MAX - 1, 30);
  const std::int64_t refused = now_us();
  std::this_thread::sleep_for(2s);
  ::kill(cluster_->head(), SIGKILL);  // and it comes back on a full disk
  std::this_thread::sleep_for(3s);
  const std::int64_t freed = now_us();
  std::filesystem::remove(disk / "filler");
  ASSERT_TRUE(eventually(40s, [&] {
    return first_ok(history(), Op::kPut, freed) > 0 &&
           first_ok(history(), Op::kCreate, freed) > 0 && first_ok(history(), Op::kAdd, freed) > 0;
  })) << history().excerpt(INT64_MAX - 1, 30);
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

}  // namespace
}  // namespace runtime::test
