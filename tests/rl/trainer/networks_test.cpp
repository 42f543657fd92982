// Runs whose two workers are on two networks: everything between them goes over Gloo's sockets. The
// model is that of one worker, and the bytes are those that the guide's formulas give.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "bench/support/network_pair.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class NetworksTest : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    network_ = bench::NetworkPair::create();
    if (!network_) GTEST_SKIP() << "network namespaces need root and `ip`";
    fs::create_directories(folder_ / "far");
    fs::permissions(folder_ / "far", fs::perms::owner_all);
    const std::string token = shell("openssl rand -hex 32").output;
    ::setenv("STARLING_TOKEN", token.substr(0, token.find('\n')).c_str(), 1);
    const Outcome head =
        shell(STARLING_BIN_DIR "/starling start --head --port 0 --num-cpus 1 --bind " +
              network_->near() + " | tail -n 1");
    ASSERT_EQ(head.code, 0) << head.output;
    address_ = head.output.substr(0, head.output.find('\n'));
    // With its own process namespace and sessions it is another machine: ranks share no memory.
    far_ =
        start("env XDG_RUNTIME_DIR=" + (folder_ / "far").string() + " " + network_->on_far_side() +
              "unshare --pid --fork --kill-child --mount-proc " STARLING_BIN_DIR
              "/starling start --num-cpus 1 --block --address " +
              address_);
    const bool both = support::eventually(
        [this] { return cluster("status").output.find("2 nodes") != std::string::npos; });
    ASSERT_TRUE(both) << read(folder_ / "output");
  }
  void TearDown() override {
    if (!address_.empty()) {
      EXPECT_EQ(cluster("stop --force").code, 0);
    }
    if (far_ > 0) ::waitpid(far_, nullptr, 0);
    ::unsetenv("STARLING_TOKEN");
    network_ = nullptr;
    TrainerTest::TearDown();
  }

  Outcome cluster(const std::string& command) const {
    return shell(STARLING_BIN_DIR "/starling " + command + " --address " + address_);
  }
  std::string weights_of(const std::string& name, const std::string& keys) const {
    const fs::path run = folder_ / name;
    const Outcome trained = train(keys + " trainer.default_local_dir=" + run.string());
    EXPECT_EQ(trained.code, 0) << trained.output;
    std::string weights;
    for (const auto& entry : fs::recursive_directory_iterator(run))
      if (entry.path().filename() == "model.safetensors") weights += read(entry.path());
    EXPECT_FALSE(weights.empty()) << trained.output;
    return weights;
  }
  std::string weights_on_both(const std::string& name, const std::string& keys) const {
    return weights_of(name, keys + both_);
  }
  // Large against all else that a step sends.
  fs::path wide_model() const {
    const fs::path path = folder_ / "wide";
    const auto made =
        make_toy_model(path, {.layers = kLayers, .hidden_size = 256, .intermediate_size = 512});
    EXPECT_TRUE(made.ok()) << made.to_string();
    return path;
  }
  // The bytes that a worker sends in a step, in sizes of the model. Of two runs the difference,
  // without what is sent once.
  double sent_in_a_step(const fs::path& model, const std::string& keys) const {
    constexpr int kFew = 2, kMany = 6;
    std::map<int, double> bytes;
    for (const int steps : {kFew, kMany}) {
      const std::uint64_t before = network_->sent();
      const Outcome trained = train(
          "actor_rollout_ref.model.path=" + model.string() + keys + both_ +
          "trainer.resume_mode=disable trainer.total_training_steps=" + std::to_string(steps));
      EXPECT_EQ(trained.code, 0) << trained.output;
      bytes[steps] = static_cast<double>(network_->sent() - before);
    }
    return (bytes[kMany] - bytes[kFew]) / (kMany - kFew) /
           static_cast<double>(fs::file_size(model / "model.safetensors"));
  }

  static constexpr int kLayers = 3;
  std::unique_ptr<bench::NetworkPair> network_;
  std::string address_;
  pid_t far_ = -1;
  std::string both_ = " trainer.nnodes=2 trainer.n_gpus_per_node=1 trainer.cpus_per_worker=1 ";
};

const std::string kActorKeys = " actor_rollout_ref.actor.";
const std::string kLevel = kActorKeys + "fsdp_config.zero_level=";

TEST_F(NetworksTest, EveryMeshWritesTheModelOfOneWorker) {
  both_ += "--address " + address_ + " ";
  const std::string keys =
      "trainer.save_freq=-1 trainer.gradient_leaves=4 trainer.total_training_steps=3 "
      "data.train_batch_size=12 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 "
      "actor_rollout_ref.model.path=" +
      model(kLayers);
  const std::string one = weights_of("one", keys + " --private");
  for (const char* level : {"0", "1", "2", "3"})
    EXPECT_TRUE(weights_on_both(std::string("zero") + level, keys + kLevel + level) == one)
        << level;
  EXPECT_TRUE(weights_on_both("tensor", keys + " parallel_config.tensor_parallel_size=2") == one);
  EXPECT_TRUE(weights_on_both("rows", keys + kActorKeys + "ulysses_sequence_parallel_size=2") ==
              one);
  EXPECT_TRUE(weights_on_both("stages", keys + " parallel_config.pipeline_parallel_size=2") == one);
}

TEST_F(NetworksTest, AStepSendsWhatItsFormulaSays) {
  both_ += "--address " + address_ + " ";
  const fs::path model = wide_model();
  // Half of the gradients to be added up; half of the sums, or of the weights, comes back.
  for (const char* level : {"0", "1", "2"})
    EXPECT_NEAR(sent_in_a_step(model, kLevel + level), 1.0, 0.05) << "level " << level;
  EXPECT_NEAR(sent_in_a_step(model, " trainer.gradient_compression=fp16" + kLevel + "0"), 0.5,
              0.05);
  // Half of the gradients; half of the weights forward, backward and to generate.
  EXPECT_NEAR(sent_in_a_step(model, kLevel + "3"), 2.0, 0.1);
  EXPECT_NEAR(
      sent_in_a_step(model, kLevel + "3" + kActorKeys + "fsdp_config.reshard_after_forward=false"),
      1.5, 0.1);
}

}  // namespace
}  // namespace rl
