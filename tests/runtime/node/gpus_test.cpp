// GPUs as a node finds them, with an NVML that the test builds.
#include "runtime/process/gpus.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/runtime/node/cluster_fixture.h"

namespace runtime {
namespace {

// What the driver's library would say, by the environment: FAKE_GPUS devices, or a failure.
constexpr const char* kFakeNvml = R"(
#include <stdio.h>
#include <stdlib.h>
static int count() { const char* text = getenv("FAKE_GPUS"); return text ? atoi(text) : 0; }
int nvmlInit_v2() { return count() < 0 ? 9 : 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned* to) { *to = (unsigned)count(); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** to) { *to = (void*)(unsigned long)(index + 1); return index < (unsigned)count() ? 0 : 2; }
int nvmlDeviceGetUUID(void* device, char* to, unsigned size) { snprintf(to, size, "GPU-%04lu", (unsigned long)device - 1); return 0; }
int nvmlDeviceGetName(void* device, char* to, unsigned size) { (void)device; snprintf(to, size, "Fake H100"); return 0; }
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* to) { (void)device; to[0] = 80ull << 30; to[1] = to[2] = 40ull << 30; return 0; }
)";

class Gpus : public ClusterTest {
 protected:
  Gpus() {
    std::ofstream(library_.file("nvml.c")) << kFakeNvml;
    const CommandResult built =
        run_command({"cc", "-shared", "-fPIC", "-o", library_.file("libnvidia-ml.so.1"),
                     library_.file("nvml.c")});
    EXPECT_EQ(built.code, 0) << built.err;
  }
  /// GPUs that a node started like this offers.
  double offered(std::vector<std::string> more) {
    const std::string address = start_head(std::move(more));
    auto nodes = nlohmann::json::parse(starling({"list", "nodes", "--json"}).out);
    const double gpus = nodes[0]["resources"].value("GPU", 0.0);
    EXPECT_EQ(starling({"stop", "--address", address}).code, 0);
    return gpus;
  }

  support::TemporaryFolder library_;
  support::ScopedVariable path_{"LD_LIBRARY_PATH", library_.path().c_str()};
  support::ScopedVariable own_{"CUDA_VISIBLE_DEVICES", nullptr};
};

TEST_F(Gpus, AreFoundByNvmlUnlessTheUserSaysOtherwise) {
  support::ScopedVariable count("FAKE_GPUS", "3");
  EXPECT_EQ(offered({}), 3);
  EXPECT_EQ(offered({"--num-gpus", "5"}), 5);
  EXPECT_EQ(offered({"--resources", R"({"GPU": 2})"}), 2);
  EXPECT_EQ(offered({"--num-gpus", "0"}), 0);
}

TEST_F(Gpus, OfANodeThatMayUseSomeAreThose) {
  support::ScopedVariable count("FAKE_GPUS", "4");
  support::ScopedVariable own("CUDA_VISIBLE_DEVICES", "3,1");
  EXPECT_EQ(offered({}), 2);
}

TEST_F(Gpus, ALibraryThatFailsIsNoGpuAndNoCrash) {
  support::ScopedVariable count("FAKE_GPUS", "-1");
  EXPECT_EQ(offered({}), 0);
}

TEST(GpuNames, AreTheNodesOwnThenNumbers) {
  support::ScopedVariable own("CUDA_VISIBLE_DEVICES", "3, GPU-77aa,-1,8");
  EXPECT_EQ(gpu_names(2), (std::vector<std::string>{"3", "GPU-77aa"}));
  EXPECT_EQ(gpu_names(3), (std::vector<std::string>{"3", "GPU-77aa", "2"}));
  EXPECT_EQ(gpu_environment(gpu_names(2), {1}),
            (Environment{{"CUDA_VISIBLE_DEVICES", "GPU-77aa"}}));
}

TEST(GpuNames, WithoutAnyOfItsOwnTheBusNumbersThem) {
  support::ScopedVariable own("CUDA_VISIBLE_DEVICES", nullptr);
  EXPECT_EQ(gpu_environment(gpu_names(4), {0, 2}),
            (Environment{{"CUDA_VISIBLE_DEVICES", "0,2"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}));
}

}  // namespace
}  // namespace runtime
