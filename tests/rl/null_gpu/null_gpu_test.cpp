// The host side of the real libtorch_cuda.so, over a GPU that computes nothing. The tests see which
// operators it refuses, and how many launches, products, copies and waits a step costs. bounds.json
// has the numbers of now.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/cuda/loaded_library.h"
#include "rl/model/head.h"
#include "rl/model/model_config.h"
#include "rl/model/save.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/worker/toy_model.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The folder of LibTorch's libraries with those of CUDA among them. It is the one that this program
// runs with, or the one that .ci/fetch_wheels.sh filled in STARLING_CACHE.
fs::path libraries_with_cuda() {
  std::error_code ignored;
  const auto has_cuda = [&](const fs::path& folder) {
    return fs::exists(folder / "libtorch_cuda.so", ignored);
  };
  const fs::path own = folder_of_loaded("libtorch_cpu.so");
  const char* cache = std::getenv("STARLING_CACHE");
  if (cache != nullptr) {
    const fs::path wheel = own.parent_path().parent_path().filename();
    const fs::path fetched = fs::path(cache) / "unpacked" / wheel / "torch/lib";
    if (has_cuda(fetched)) return fetched;
  }
  return has_cuda(own) ? own : fs::path();
}

class NullGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path stand_ins = fs::path(STARLING_BIN_DIR) / "../tests/null_gpu";
    if (!fs::exists(stand_ins / "libnull_gpu.so"))
      GTEST_SKIP() << "built without the headers of the CUDA toolkit";
    libraries_ = libraries_with_cuda();
    if (libraries_.empty())
      GTEST_SKIP()
          << "LibTorch's CUDA libraries are not here: .ci/fetch_wheels.sh cpu gpu (3.6 GB)";
    environment_ = "LD_LIBRARY_PATH=" + stand_ins.string() + ":" + libraries_.string() +
                   " LD_PRELOAD=" + (stand_ins / "libnull_gpu.so").string() + " OMP_NUM_THREADS=1";
    ASSERT_TRUE(
        make_toy_model(model(), {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
  }

  fs::path model() const { return folder_.file("model"); }

  // Runs a line of shell under the null GPU: what it prints.
  std::string shell(const std::string& line) const {
    std::FILE* pipe = ::popen(("export " + environment_ + "; " + line).c_str(), "r");
    if (pipe == nullptr) return "";
    std::string output;
    std::array<char, 4096> buffer;
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) output += buffer.data();
    const int ended = ::pclose(pipe);
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << line << ": " << output;
    return output;
  }

  // In its own process.
  json run(const std::string& scenario, const std::string& variables = "") const {
    const std::string self = fs::read_symlink("/proc/self/exe");
    const std::string output =
        shell(variables + " " + self + " --run " + scenario + " " + model().string());
    const std::size_t line = output.rfind("\n{");
    json found = json::parse(line == std::string::npos ? "{}" : output.substr(line + 1), nullptr,
                             /*allow_exceptions=*/false);
    EXPECT_TRUE(found.is_object() && found.contains("status")) << output;
    return found;
  }

  void expect_ok(const std::string& scenario) const {
    EXPECT_EQ(run(scenario).value("status", ""), "ok") << scenario;
  }

  // More is a step back. Far less means that the bounds are to be lowered with the change.
  void expect_within_bounds(const std::string& scenario) const {
    const json found = run(scenario);
    ASSERT_EQ(found.value("status", ""), "ok") << scenario;
    const json bounds =
        json::parse(std::ifstream(STARLING_SOURCE_DIR "/tests/rl/null_gpu/bounds.json"));
    ASSERT_TRUE(bounds.contains(scenario)) << "not recorded: " << found.dump();
    for (const auto& [what, bound] : bounds[scenario].items()) {
      const long most = bound.get<long>(), is = found.value(what, -1L);
      EXPECT_LE(is, most) << scenario << ": " << what << " of " << found.dump();
      EXPECT_GE(is, most * 9 / 10) << scenario << ": lower the bound: " << found.dump();
    }
  }

  /// What a step of training says on a cluster with that GPU, and "ended CODE".
  std::string train(const std::string& variables, const std::string& keys) const {
    std::filesystem::create_directory(folder_.file("s"));
    const std::string starling = std::string(STARLING_BIN_DIR) + "/starling";
    // Segments that grow are made by the driver's library, which the null GPU does not have.
    return shell("export " + variables + " STARLING_SESSION_ROOT=" + folder_.file("s") +
                 " PYTORCH_ALLOC_CONF=expandable_segments:False; at=$(" + starling +
                 " start --head --port 0 --gpus 1 --cpus 2 | tail -1); " + starling +
                 " train --address $at --config " STARLING_SOURCE_DIR
                 "/examples/toy/grpo.yaml trainer.device=cuda trainer.total_training_steps=1 "
                 "trainer.test_freq=-1 trainer.val_before_train=false sft.steps=0 " +
                 keys + " trainer.default_local_dir=" + folder_.file("run") +
                 " 2>&1; echo ended $?; " + starling + " stop >/dev/null 2>&1");
  }

  fs::path libraries_;
  std::string environment_;
  support::TemporaryFolder folder_;
};

TEST_F(NullGpu, ADecodeStepStaysWithinItsBounds) { expect_within_bounds("decode_step"); }
TEST_F(NullGpu, AnUpdateStaysWithinItsBounds) { expect_within_bounds("policy_update"); }
TEST_F(NullGpu, AnUpdateInBf16StaysWithinItsBounds) { expect_within_bounds("bf16_update"); }

TEST_F(NullGpu, CudaTakesWhatAdaptersWithDropoutAsk) { expect_ok("dropout_update"); }
TEST_F(NullGpu, CudaTakesWhatAnOffloadedPolicyAsks) { expect_ok("offloaded_update"); }
TEST_F(NullGpu, CudaTakesWhatGenerationAsks) { expect_ok("generate"); }
TEST_F(NullGpu, CudaTakesWhatAStudentWithATeacherAsks) { expect_ok("teacher_step"); }
TEST_F(NullGpu, CudaTakesWhatPreferencesOfAnAdapterAsk) { expect_ok("preference_step"); }

// Policy, critic, reference, teacher and a reward model, each a process with a share of the one
// GPU: a cluster, and a step of training.
TEST_F(NullGpu, FiveModelsShareAGpu) {
  const auto config = with_task(*ModelConfig::load(model()), ModelTask::kTokenClassification);
  const std::string judge = folder_.file("judge");
  ASSERT_TRUE(save_model_folder(config, Parameters::random(config, 1), judge).ok());
  ASSERT_TRUE(save_tokenizer(model(), judge).ok());
  const std::string output =
      train("",
            "algorithm.adv_estimator=gae actor_rollout_ref.actor.use_kl_loss=true "
            "distillation.enabled=true "
            "distillation.teacher_models.teacher_model.model_path=toy "
            "reward.reward_model.enable=true reward.reward_model.model_path=" +
                judge);
  EXPECT_NE(output.find("step:1/1"), std::string::npos) << output;
  std::ifstream file(folder_.file("run") + "/metrics.jsonl");
  const std::string metrics{std::istreambuf_iterator<char>(file), {}};
  for (const char* role : {"critic/vf_loss", "actor/kl_loss", "distillation/loss"})
    EXPECT_NE(metrics.find(role), std::string::npos) << role << ": " << metrics;
}

// The worker's process ends by itself: its callers hear of its death, with the reason.
TEST_F(NullGpu, AWorkerEndsWithItsDevice) {
  const std::string output = train("NULL_GPU_FAILS_AFTER=2000", "");
  EXPECT_NE(output.find("exited with code 1"), std::string::npos) << output;
  EXPECT_NE(output.find("the device is lost to this process, which must end"), std::string::npos)
      << output;
  EXPECT_NE(output.find("ended 1"), std::string::npos) << output;
}

TEST_F(NullGpu, AProcessThatOpensCudaTooLateIsTold) {
  const json late = run("opened_late");
  EXPECT_EQ(late.value("code", ""), "unavailable");
  EXPECT_NE(late.value("status", "").find("CUDA was opened too late in this process"),
            std::string::npos)
      << late.dump();
  EXPECT_EQ(run("opened_after_training").value("status", ""), "ok")
      << "a model opens it before its first gradient";
}

TEST_F(NullGpu, ADeviceThatIsNotThereIsNamed) {
  const json twice = run("opened_twice");
  EXPECT_NE(twice.value("status", "").find("this machine has 1 CUDA devices"), std::string::npos)
      << twice.dump();
  EXPECT_FALSE(twice.value("bf16 sums", true));
}

TEST_F(NullGpu, ErrorsOfTheDeviceAreToldByKind) {
  const json full = run("policy_update", "NULL_GPU_BYTES=1000000");
  EXPECT_EQ(full.value("code", ""), "resource exhausted") << full.dump();
  const json lost = run("policy_update", "NULL_GPU_FAILS_AFTER=200");
  EXPECT_EQ(lost.value("code", ""), "internal error") << lost.dump();
  EXPECT_NE(lost.value("status", "").find("the device is lost to this process, which must end"),
            std::string::npos)
      << lost.dump();
}

}  // namespace
}  // namespace rl
