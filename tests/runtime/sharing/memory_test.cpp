// A node short of memory: in its own cgroup where the machine lets one be made.
#include "tests/runtime/sharing/sharing_fixture.h"
#include "tests/support/memory_group.h"
#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

class MemoryTest : public SharingTest {};

#if defined(__SANITIZE_THREAD__) || \
    defined(__SANITIZE_ADDRESS__)  // which keep several bytes for each
constexpr std::uint64_t kLimit = 2048ull << 20;
const std::string kLimitText = "2.00 GiB";
#else
constexpr std::uint64_t kLimit = 512 << 20;
const std::string kLimitText = "0.50 GiB";
#endif
constexpr std::uint64_t kGulp = 10 << 20;

TEST_F(MemoryTest, TheWorkerThatGrewMostIsStoppedAndComesBack) {
  const support::MemoryGroup group;
  if (!group.exists() || !group.limit(kLimit)) GTEST_SKIP() << "no memory cgroup can be made here";
  // A shell that joins the group becomes the node, so that its workers are in it too.
  const std::string command =
      group.enter() + " && exec " STARLING_BIN_DIR "/starling start --address " + address() +
      " --num-cpus 8 --object-store-memory 67108864 --memory-threshold 0.8 --block";
  nodes_.push_back(std::make_unique<Command>(std::vector<std::string>{"/bin/sh", "-c", command}));
  NodeId second;
  ASSERT_TRUE(eventually([&] {
    for (const NodeInfo& node : nodes()) {
      if (node.node != rt_->cluster().node_id()) second = node.node;
    }
    return !second.is_none();
  })) << nodes_.back()->output();
  ActorOptions options;
  options.node = second;
  options.cpus = 0.1;
  options.max_restarts = 1;
  auto bystander = rt_->spawn<Glutton>(options), glutton = rt_->spawn<Glutton>(options);
  ASSERT_TRUE(bystander.ok() && glutton.ok()) << glutton.status().to_string();
  get(bystander->call(&Glutton::eat, std::uint64_t{60 << 20}));
  support::hold_for(2s);  // what was eaten by then is old, by the guard's measure
  const int pid = glutton->pid();
  const Status status =
      rt_->get(glutton->call(&Glutton::gorge, kGulp, static_cast<int>(kLimit / kGulp)), 60s);
  expect_failure(
      status, ErrorCode::kActorDied,
      {"node " + second.short_hex() + " was short of memory", kLimitText, "cgroup /", "80 %",
       "actor Glutton " + glutton->id().short_hex(), "pid " + std::to_string(pid)});
  EXPECT_NE(get(glutton->call(&Glutton::pid)), pid) << "it has been started again";
  EXPECT_EQ(get(bystander->call(&Glutton::pid)), bystander->pid());
  EXPECT_EQ(nodes().size(), 2u) << "the node itself goes on";
  nodes_.clear();
}

}  // namespace
}  // namespace runtime::test
