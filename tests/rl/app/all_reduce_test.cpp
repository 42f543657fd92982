// Sums between real nodes are tested by `starling doctor --cluster` in tests/placement/app.
#include "rl/app/all_reduce.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/rl/app/command_run.h"

namespace rl {
namespace {

TEST(AllReduce, NcclNeedsAFreeGpuOfEachNode) {
  runtime::NodeInfo with_gpu;
  with_gpu.address = "10.0.0.1:1";
  with_gpu.resources = with_gpu.available = {{"GPU", 2}};
  runtime::NodeInfo busy = with_gpu, without = with_gpu;
  busy.address = "10.0.0.2:1";
  busy.available["GPU"] = 0.5;
  without.address = "10.0.0.3:1";
  without.resources = without.available = {{"CPU", 2}};
  using Nodes = std::vector<runtime::NodeInfo>;
  EXPECT_EQ(why_not_nccl(Nodes{with_gpu, with_gpu}), "");
  EXPECT_EQ(why_not_nccl(Nodes{with_gpu, busy}),
            "all GPUs of node 00000000 at 10.0.0.2:1 are in use");
  EXPECT_EQ(why_not_nccl(Nodes{with_gpu, without}), "node 00000000 at 10.0.0.3:1 has no GPU");
}

TEST(AllReduce, WithoutAClusterItFails) {
  char name[] = "test";
  char* arguments[] = {name, nullptr};
  runtime::RuntimeOptions options;
  options.address = "nowhere";
  runtime::Runtime runtime(1, arguments, options);
  const auto all_reduce = [&](int argc, char** argv) {
    return all_reduce_command(runtime, argc, argv);
  };
  const CommandRun failed = run_here(all_reduce, {"all-reduce"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.error.find("nowhere"), std::string::npos) << failed.error;
  EXPECT_EQ(failed.out, "");
  EXPECT_EQ(run_here(all_reduce, {"all-reduce", "--bytes", "3"}).code, 2) << "less than a float";
}

}  // namespace
}  // namespace rl
