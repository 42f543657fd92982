// The disk under the spill folder is full.
#include "tests/runtime/cluster/disks_fixture.h"

namespace runtime::test {
namespace {

TEST_F(DisksTest, AFullDiskUnderTheSpillFolderIsATypedError) {
  const std::filesystem::path disk = folder_.path() / "disk";
  make_network(3);
  if (IsSkipped()) return;
  if (!mount_small(disk, "48m")) GTEST_SKIP() << "nothing can be mounted here";
  start({.machines = 3,
         .arguments = {"--num-cpus", "4", "--object-store-memory", "32MiB", "--spill-dir",
                       disk.string(), "--spill-limit", "1GiB"}});
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
