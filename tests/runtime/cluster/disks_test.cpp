// Disks that are full.
#include <sys/mount.h>

#include <fstream>

#include "fixture.h"

namespace runtime::test {
namespace {

class DisksTest : public NetworkTest {
 protected:
  /// A file system of its own of so many bytes; false where none can be mounted.
  bool mount_small(const std::filesystem::path& where, const std::string& size) {
    std::filesystem::create_directories(where);
    mounted_ = where;
    return ::mount("tmpfs", where.c_str(), "tmpfs", 0, ("size=" + size + ",mode=0700").c_str()) == 0;
  }
  /// Takes all that is free there.
  static void fill(const std::filesystem::path& folder) {
    std::ofstream file(folder / "filler", std::ios::binary);
    const std::string block(4096, 'f');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void TearDown() override {
    NetworkTest::TearDown();
    if (!mounted_.empty()) ::umount2(mounted_.c_str(), MNT_DETACH);
  }

  std::filesystem::path mounted_;
};

TEST_F(DisksTest, AFullDiskUnderTheJournalRefusesWhatIsNewAndForgetsNothing) {
  const std::filesystem::path disk = folder_.path() / "disk";
  make_network(3);
  if (IsSkipped()) return;
  if (!mount_small(disk, "12m")) GTEST_SKIP() << "nothing can be mounted here";
  cluster_ = std::make_unique<Cluster>(*network_, folder_.path(), ClusterOptions{.machines = 3, .durable = false, .arguments = {"--num-cpus", "4"}, .head_arguments = {"--journal", (disk / "journal").string()}});
  ASSERT_TRUE(cluster_->start().ok());
  begin_load(1, {.tallies = 2, .per_second = 20});
  begin_load(2, {.tallies = 2, .per_second = 20});
  std::this_thread::sleep_for(2s);
  fill(disk);
  const std::int64_t full = now_us();
  // What still fits between two blocks is written; then no more.
  ASSERT_TRUE(eventually(20s, [&] {
    for (const Event& event : history().events) {
      if (event.op == Op::kPut && event.begin > full && event.code == ErrorCode::kResourceExhausted) return true;
    }
    return false;
  })) << history().excerpt(INT64_MAX - 1, 30);
  const std::int64_t refused = now_us();
  std::this_thread::sleep_for(2s);
  ::kill(cluster_->head(), SIGKILL);  // and it comes back on a full disk
  std::this_thread::sleep_for(3s);
  const std::int64_t freed = now_us();
  std::filesystem::remove(disk / "filler");
  ASSERT_TRUE(eventually(10s, [&] { return first_ok(history(), Op::kPut, freed) > 0 && first_ok(history(), Op::kCreate, freed) > 0 && first_ok(history(), Op::kAdd, freed) > 0; }))
      << history().excerpt(INT64_MAX - 1, 30);
  end_loads();
  const History asked = history();
  for (const Event& event : asked.events) {
    if (event.op == Op::kEcho) EXPECT_TRUE(event.ok()) << event.to_string();
    if (event.op == Op::kPut && event.code == ErrorCode::kResourceExhausted) EXPECT_NE(event.text.find("journal"), std::string::npos) << event.text;
  }
  EXPECT_GT(count_ok(asked, Op::kEcho, refused, freed), 100) << "calls between actors need no journal";
  EXPECT_EQ(cluster_->members(2), 3);
  expect_promises_kept(2);
}

TEST_F(DisksTest, AFullDiskUnderTheSpillFolderIsATypedError) {
  const std::filesystem::path disk = folder_.path() / "disk";
  make_network(3);
  if (IsSkipped()) return;
  if (!mount_small(disk, "48m")) GTEST_SKIP() << "nothing can be mounted here";
  start({.machines = 3, .arguments = {"--num-cpus", "4", "--object-store-memory", "32MiB", "--spill-dir", disk.string(), "--spill-limit", "1GiB"}});
  begin_load(1, {.tallies = 2, .per_second = 20, .kinds = "aep"});
  const Finished filled = cluster_->run(2, {own_program(), "--fill", "40", "4"}, 100s);
  std::printf("%s", filled.output.c_str());
  EXPECT_EQ(filled.code, 0) << filled.output;
  end_loads();
  for (const Event& event : history().events) EXPECT_TRUE(event.ok()) << event.to_string();
  EXPECT_EQ(cluster_->members(1), 3);
  expect_promises_kept(1);
}

}  // namespace
}  // namespace runtime::test
