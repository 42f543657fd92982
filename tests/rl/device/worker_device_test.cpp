// Workers whose models are on a device: what they learn there is what they learn on the CPU.
#include <ATen/TensorOperators.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "rl/data/prompt_builder.h"
#include "rl/data/toy.h"
#include "rl/model/device.h"
#include "rl/model/head.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/model/save.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/worker/critic_worker.h"
#include "rl/worker/policy_worker.h"
#include "rl/worker/preference_worker.h"
#include "rl/worker/reference_worker.h"
#include "rl/worker/reward_model.h"
#include "rl/worker/sft_worker.h"
#include "rl/worker/toy_model.h"
#include "stand_in.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

constexpr std::int64_t kSamples = 4;
constexpr std::int64_t kPrompts = 3;

class WorkerDevice : public testing::DeviceTest {
 protected:
  WorkerDevice() {
    EXPECT_TRUE(
        make_toy_model(model(), {.layers = 2, .hidden_size = 32, .intermediate_size = 64}).ok());
  }

  std::filesystem::path model() const { return folder_.file("model"); }

  PolicyOptions options(const std::string& device) const {
    PolicyOptions options;
    options.model = model();
    options.device = device;
    options.training = {.samples = kSamples, .response_tokens_max = 6};
    options.micro_batch.tokens_max = 60;
    options.positions_max = 48;
    options.objective.use_kl_loss = true;
    options.objective.entropy_coefficient = 0.01;
    return options;
  }

  static std::unique_ptr<PolicyWorker> make(const PolicyOptions& options) {
    auto worker = PolicyWorker::create(options, make_single_communicator());
    EXPECT_TRUE(worker.ok()) << worker.status().to_string();
    return worker.ok() ? std::move(*worker) : nullptr;
  }

  PromptBatch prompts() const {
    const Tokenizer tokenizer = *Tokenizer::load(model());
    const Dataset data =
        make_toy_dataset({.task = ToyTask::kCopy, .rows = 64, .letters = 4, .length = 2});
    const auto builder = PromptBuilder::create(tokenizer, {});
    PromptBatch batch;
    for (std::int64_t row = 0; row < kPrompts; ++row) {
      batch.ids.append(*builder->ids(data.row(row)));
      batch.seeds.push_back(static_cast<std::uint64_t>(row));
    }
    return batch;
  }

  // One mini-batch of everything, with advantages that differ.
  static UpdatePlan plan(const RolloutBatch& batch) {
    UpdatePlan plan;
    plan.learning_rate = 1e-2;
    for (std::int64_t i = 0; i < batch.samples(); ++i)
      plan.advantages.push_back(i % 2 == 0 ? 1.0F : -0.5F);
    plan.mini_batches = {{.first_sample = 0,
                          .last_sample = batch.samples(),
                          .tokens_total = static_cast<std::int64_t>(batch.responses.values.size()),
                          .samples_total = batch.samples()}};
    return plan;
  }

  static void expect_near(Metrics there, Metrics here) {
    for (Metrics* metrics : {&there, &here})
      std::erase_if(*metrics, [](const auto& entry) {
        return entry.first.starts_with("perf/");
      });  // of the machine
    ASSERT_EQ(there.size(), here.size());
    for (const auto& [name, value] : here)
      EXPECT_NEAR(there.at(name), value, 1e-4 + 1e-3 * std::fabs(value)) << name;
  }

  support::TemporaryFolder folder_;
};

TEST_F(WorkerDevice, APolicyTakesTheStepsThatItTakesOnTheCpu) {
  const auto here = make(options("")), there = make(options(testing::tested_device()));
  ASSERT_TRUE(here && there);
  EXPECT_FALSE(there->learner().model().parameters().arena().device().is_cpu());
  const auto batch = here->generate(prompts(), false);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  auto reference = ReferenceWorker::create(
      {.model = model(), .device = testing::tested_device(), .micro_batch = {}});
  ASSERT_TRUE(reference.ok()) << reference.status().to_string();
  const auto scores = (*reference)->score(*batch);
  ASSERT_TRUE(scores.ok()) << scores.status().to_string();
  const auto expected = here->logprobs(*batch), found = there->logprobs(*batch);
  ASSERT_TRUE(expected.ok() && found.ok()) << found.status().to_string();
  for (std::size_t i = 0; i < expected->size(); ++i) {
    EXPECT_NEAR((*found)[i], (*expected)[i], 1e-4);
    EXPECT_NEAR(scores->logprobs[i], (*expected)[i], 1e-4);
  }
  for (int step = 0; step < 2; ++step) {
    const auto of_here = here->update(*batch, scores->logprobs, plan(*batch)),
               of_there = there->update(*batch, scores->logprobs, plan(*batch));
    ASSERT_TRUE(of_here.ok()) << of_here.status().to_string();
    ASSERT_TRUE(of_there.ok()) << of_there.status().to_string();
    expect_near(*of_there, *of_here);
  }
  // Two steps at this rate move a weight by up to 0.02. Adam turns the last digits of small
  // gradients into whole steps, so few weights may differ more.
  const at::Tensor apart = (there->learner().model().parameters().arena().cpu() -
                            here->learner().model().parameters().arena())
                               .abs();
  EXPECT_LT(apart.mean().item<float>(), 1e-4F);
}

TEST_F(WorkerDevice, WhatWasLearnedThereIsSavedAndReadAgain) {
  const auto there = make(options(testing::tested_device()));
  const auto here = make(options(""));
  ASSERT_TRUE(here && there);
  const auto batch = here->generate(prompts(), false);
  ASSERT_TRUE(batch.ok());
  const std::vector<float> reference(batch->logprobs.size(), -1.0F);
  const std::uint64_t before = there->weights_checksum();
  ASSERT_TRUE(there->update(*batch, reference, plan(*batch)).ok());
  EXPECT_NE(there->weights_checksum(), before);
  std::unique_ptr<LearnerSnapshot> snapshot;
  there->snapshot(snapshot);
  ASSERT_TRUE(there->save(folder_.file("saved")).ok());
  ASSERT_TRUE(there->write(*snapshot, folder_.file("snapshot")).ok());
  ASSERT_TRUE(there->update(*batch, reference, plan(*batch)).ok());
  const std::uint64_t after = there->weights_checksum();
  for (const char* name : {"saved", "snapshot"}) {
    const auto again = make(options(testing::tested_device()));
    const auto status = again->load(folder_.file(name));
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(again->update(*batch, reference, plan(*batch)).ok());
    EXPECT_EQ(again->weights_checksum(), after) << name;
  }
}

TEST_F(WorkerDevice, AnAdapterLearnsThere) {
  PolicyOptions with_adapter = options(testing::tested_device());
  with_adapter.adapter = AdapterOptions{};
  with_adapter.adapter->lora.rank = 4;
  with_adapter.adapter->lora.target_modules = {"q_proj", "v_proj"};
  const auto there = make(with_adapter);
  ASSERT_TRUE(there);
  const auto batch = make(options(""))->generate(prompts(), false);
  ASSERT_TRUE(batch.ok());
  const std::vector<float> reference(batch->logprobs.size(), -1.0F);
  const std::uint64_t before = there->weights_checksum();
  const auto learned = there->update(*batch, reference, plan(*batch));
  ASSERT_TRUE(learned.ok()) << learned.status().to_string();
  EXPECT_NE(there->weights_checksum(), before);
  ASSERT_TRUE(there->save(folder_.file("saved")).ok());
  EXPECT_TRUE(
      std::filesystem::exists(folder_.file("saved/lora_adapter/adapter_model.safetensors")));
}

// What is dropped is the same on every device.
TEST_F(WorkerDevice, AnAdapterDropsThereWhatItDropsOnTheCpu) {
  const auto with_dropout = [&](const std::string& device) {
    PolicyOptions dropping = options(device);
    dropping.adapter = AdapterOptions{};
    dropping.adapter->lora.rank = 4;
    dropping.adapter->lora.dropout = 0.5;
    return dropping;
  };
  const auto here = make(with_dropout("")), there = make(with_dropout(testing::tested_device()));
  ASSERT_TRUE(here && there);
  const auto batch = make(options(""))->generate(prompts(), false);
  ASSERT_TRUE(batch.ok());
  const std::vector<float> reference(batch->logprobs.size(), -1.0F);
  for (int step = 0; step < 3; ++step) {  // of the first B is zero
    const auto of_here = here->update(*batch, reference, plan(*batch)),
               of_there = there->update(*batch, reference, plan(*batch));
    ASSERT_TRUE(of_here.ok()) << of_here.status().to_string();
    ASSERT_TRUE(of_there.ok()) << of_there.status().to_string();
    expect_near(*of_there, *of_here);
  }
}

// What is left out is a function of the step, which a checkpoint has.
TEST_F(WorkerDevice, AnAdapterWithDropoutGoesOnAsIfItHadNotStopped) {
  PolicyOptions dropping = options("");
  dropping.adapter = AdapterOptions{};
  dropping.adapter->lora.rank = 4;
  dropping.adapter->lora.dropout = 0.5;
  const auto worker = make(dropping);
  const auto batch = make(options(""))->generate(prompts(), false);
  ASSERT_TRUE(worker && batch.ok());
  const std::vector<float> reference(batch->logprobs.size(), -1.0F);
  for (int step = 0; step < 2; ++step)
    ASSERT_TRUE(worker->update(*batch, reference, plan(*batch)).ok());
  ASSERT_TRUE(worker->save(folder_.file("saved")).ok());
  ASSERT_TRUE(worker->update(*batch, reference, plan(*batch)).ok());
  const auto resumed = make(dropping);
  ASSERT_TRUE(resumed->load(folder_.file("saved")).ok());
  const std::uint64_t saved = resumed->weights_checksum();
  ASSERT_TRUE(resumed->update(*batch, reference, plan(*batch)).ok());
  EXPECT_NE(resumed->weights_checksum(), saved);
  EXPECT_EQ(resumed->weights_checksum(), worker->weights_checksum());
}

// Two turns, of which the second is learned.
SupervisedBatch demonstrations() {
  SupervisedBatch batch;
  for (std::int32_t row = 0; row < 3; ++row) {
    LearnedTokens tokens;
    for (std::int32_t i = 0; i < 7 + row; ++i) {
      tokens.ids.push_back(4 + (row * 7 + i * i) % 26);
      tokens.learned.push_back(i >= 3 ? 1 : 0);
    }
    batch.append(tokens);
  }
  return batch;
}

TEST_F(WorkerDevice, AStudentLearnsFromATeacherThere) {
  ASSERT_TRUE(make_toy_model(folder_.file("teacher"),
                             {.layers = 1, .hidden_size = 48, .intermediate_size = 64, .seed = 7})
                  .ok());
  const SupervisedBatch batch = demonstrations();
  std::vector<Metrics> metrics;
  for (const char* device : {"", testing::tested_device()}) {
    SftWorkerOptions distilled;
    distilled.model = model();
    distilled.device = device;
    distilled.teacher = TeacherOptions{.model = folder_.file("teacher"),
                                       .loss = {.temperature = 2.0, .weight = 0.5, .top_k = 8}};
    auto worker = SftWorker::create(distilled, make_single_communicator());
    ASSERT_TRUE(worker.ok()) << worker.status().to_string();
    for (int step = 0; step < 2; ++step) {
      const auto learned = (*worker)->update(batch, {batch.learned_tokens(), 1e-2});
      ASSERT_TRUE(learned.ok()) << learned.status().to_string();
      metrics.push_back(*learned);
    }
  }
  EXPECT_GT(metrics[0].at("train/kl"), 0.0);
  expect_near(metrics[2], metrics[0]);
  expect_near(metrics[3], metrics[1]);
}

// The reference is the base: the adapter is out of the way meanwhile, and its gradients stay.
TEST_F(WorkerDevice, PreferencesAreLearnedByAnAdapterThere) {
  PreferenceBatch batch;
  for (std::int32_t row = 0; row < 3; ++row) {
    const std::vector<std::int32_t> prompt = {2, 5 + row, 6, 3}, chosen = {7, 8 + row, 1},
                                    rejected = {9, 1};
    batch.append_pair(
        {.prompt = prompt, .chosen = chosen, .rejected = rejected, .margin = 0, .wanted = true});
  }
  const PreferencePasses single =
      plan_preferences({&batch, 1}, /*pairs=*/true, std::vector{MicroBatchLimits{.samples_max = 1}})
          .front();
  std::vector<Metrics> metrics;
  for (const char* device : {"", testing::tested_device()}) {
    PreferenceWorkerOptions with_adapter;
    with_adapter.model = model();
    with_adapter.device = device;
    with_adapter.adapter = AdapterOptions{};
    with_adapter.adapter->lora.rank = 4;
    auto worker = PreferenceWorker::create(with_adapter, make_single_communicator());
    ASSERT_TRUE(worker.ok()) << worker.status().to_string();
    for (int step = 0; step < 2; ++step) {
      const auto learned =
          (*worker)->update(batch, single, {batch.rows(), batch.wanted_count()}, 1e-2);
      ASSERT_TRUE(learned.ok()) << learned.status().to_string();
      metrics.push_back(*learned);
    }
  }
  EXPECT_NE(metrics[1].at("loss"), metrics[0].at("loss")) << "it has learned";
  expect_near(metrics[2], metrics[0]);
  expect_near(metrics[3], metrics[1]);
}

// A device of that many bytes.
class SmallDevice {
 public:
  explicit SmallDevice(std::int64_t bytes) {
    ::setenv("STARLING_STANDIN_BYTES", std::to_string(bytes).c_str(), 1);
  }
  ~SmallDevice() { ::unsetenv("STARLING_STANDIN_BYTES"); }
};

TEST_F(WorkerDevice, TheEnginesCacheIsWhatTheDeviceHasRoomFor) {
  const at::Device device = *find_device(testing::tested_device());
  PolicyOptions few = options(testing::tested_device());
  few.engine.sequences_max = 3;
  const auto worker = make(few);
  ASSERT_TRUE(worker);
  // 48 tokens are three blocks a sequence, and there is room for all of them.
  EXPECT_EQ(worker->engine().cache().blocks(), 9);
  few.engine.sequences_max = 100'000;
  few.engine.utilization = 0.001;
  const auto less = make(few);
  ASSERT_TRUE(less);
  const KvCache& cache = less->engine().cache();
  EXPECT_LT(cache.blocks() * cache.block_bytes(), device_room(device)->total / 1000);
  EXPECT_GT(cache.blocks() * cache.block_bytes(), device_room(device)->total / 2000);
}

TEST_F(WorkerDevice, ADeviceThatIsTooSmallSaysSoEverywhere) {
  if (!testing::on_stand_in()) GTEST_SKIP() << "no other device is as small as one says";
  const auto refused = [&](std::int64_t bytes) {
    const SmallDevice small(bytes);
    const auto worker =
        PolicyWorker::create(options(testing::tested_device()), make_single_communicator());
    EXPECT_EQ(worker.status().code(), runtime::ErrorCode::kResourceExhausted)
        << bytes << ": " << worker.status().to_string();
    return worker.status().message();
  };
  const std::int64_t weights =
      Parameters::load(*ModelConfig::load(model()), model())->arena_size() * 4;
  EXPECT_NE(refused(weights / 2).find("the weights of "), std::string::npos);
  EXPECT_NE(refused(weights * 2 + (64 << 10)).find("gpu_memory_utilization"), std::string::npos);
  {
    const SmallDevice small(weights * 3 / 2);
    SftWorkerOptions supervised;
    supervised.model = model();
    supervised.device = testing::tested_device();
    const auto worker = SftWorker::create(supervised, make_single_communicator());
    EXPECT_EQ(worker.status().code(), runtime::ErrorCode::kResourceExhausted);
    EXPECT_NE(worker.status().message().find("gradients and optimizer"), std::string::npos);
  }

  const auto worker = make(options(testing::tested_device()));
  ASSERT_TRUE(worker);
  const auto batch = make(options(""))->generate(prompts(), false);
  ASSERT_TRUE(batch.ok());
  const SmallDevice none(1);
  const std::vector<float> reference(batch->logprobs.size(), -1.0F);
  EXPECT_EQ(worker->update(*batch, reference, plan(*batch)).status().code(),
            runtime::ErrorCode::kResourceExhausted);
  EXPECT_EQ(worker->logprobs(*batch).status().code(), runtime::ErrorCode::kResourceExhausted);
  const auto generated = worker->generate(prompts(), false);
  EXPECT_EQ(generated.status().code(), runtime::ErrorCode::kResourceExhausted)
      << generated.status().to_string();
}

bool has_memory(const Parameters& parameters) { return parameters.arena().storage().nbytes() > 0; }

TEST_F(WorkerDevice, WhatIsOffloadedLearnsTheSameAndIsAwayBetweenCalls) {
  PolicyOptions offloading = options(testing::tested_device());
  offloading.learner.offload = {.parameters = true, .gradients = true};
  const auto away = make(offloading), there = make(options(testing::tested_device()));
  ASSERT_TRUE(away && there);
  const Transformer& model = away->learner().model();
  const auto expect_away = [&](const char* when) {
    EXPECT_FALSE(has_memory(model.parameters())) << when;
    EXPECT_FALSE(has_memory(model.gradients())) << when;
  };
  expect_away("at the beginning");
  {
    const Offload::Stay here = away->stay();
    EXPECT_TRUE(has_memory(model.parameters()));
    EXPECT_FALSE(has_memory(model.gradients())) << "nothing learns";
    ASSERT_TRUE(away->await_weights().ok());
    EXPECT_TRUE(model.parameters().arena().cpu().equal(
        there->learner().model().parameters().arena().cpu()));
  }
  expect_away("after a stay");
  const auto batch = make(options(""))->generate(prompts(), false);
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  const auto scorer = ReferenceWorker::create({.model = this->model(),
                                               .device = testing::tested_device(),
                                               .micro_batch = {},
                                               .offload = true});
  const auto staying = ReferenceWorker::create(
      {.model = this->model(), .device = testing::tested_device(), .micro_batch = {}});
  ASSERT_TRUE(scorer.ok() && staying.ok()) << scorer.status().to_string();
  const auto reference = (*scorer)->score(*batch);
  ASSERT_TRUE(reference.ok()) << reference.status().to_string();
  EXPECT_EQ(reference->logprobs, (*staying)->score(*batch)->logprobs);
  EXPECT_EQ((*scorer)->score(*batch)->logprobs, reference->logprobs) << "the second time";
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(there->update(*batch, reference->logprobs, plan(*batch)).ok());
    const auto updated = away->update(*batch, reference->logprobs, plan(*batch));
    ASSERT_TRUE(updated.ok()) << updated.status().to_string();
    expect_away("after an update");
    EXPECT_EQ(away->weights_checksum(), there->weights_checksum()) << step;
    EXPECT_EQ(*away->logprobs(*batch), *there->logprobs(*batch)) << step;
  }
  // What is saved, now and from a copy, is read again by one that stays there.
  std::unique_ptr<LearnerSnapshot> snapshot;
  away->snapshot(snapshot);
  ASSERT_TRUE(away->save(folder_.file("saved")).ok());
  ASSERT_TRUE(away->write(*snapshot, folder_.file("snapshot")).ok());
  expect_away("after saving");
  const std::uint64_t learned = away->weights_checksum();
  for (const char* name : {"saved", "snapshot"}) {
    for (const PolicyOptions& how : {offloading, options(testing::tested_device())}) {
      const auto again = make(how);
      const auto loaded = again->load(folder_.file(name));
      ASSERT_TRUE(loaded.ok()) << loaded.to_string();
      EXPECT_EQ(again->weights_checksum(), learned) << name;
      EXPECT_EQ(*again->logprobs(*batch), *there->logprobs(*batch)) << name;
    }
  }
}

TEST_F(WorkerDevice, ARewardModelScoresThereAndLeavesInBetween) {
  const auto config = with_task(*ModelConfig::load(model()), ModelTask::kTokenClassification);
  ASSERT_TRUE(save_model_folder(config, Parameters::random(config, 1), folder_.file("judge")).ok());
  ASSERT_TRUE(save_tokenizer(model(), folder_.file("judge")).ok());
  const std::vector<std::vector<std::int32_t>> conversations = {
      {1, 2, 3, 4}, {3, 2}, {5, 6, 7, 8, 9}};
  const auto here =
      RewardModelScorer::create(folder_.file("judge"), {.threads = 1}, /*start=*/true);
  ASSERT_TRUE(here.ok()) << here.status().to_string();
  const std::vector<double> expected = *(*here)->score_ids(conversations);
  for (const bool offload : {false, true}) {
    const auto there = RewardModelScorer::create(folder_.file("judge"),
                                                 {.threads = 1, .device = testing::tested_device()},
                                                 /*start=*/true, offload);
    ASSERT_TRUE(there.ok()) << there.status().to_string();
    for (int round = 0; round < 2; ++round) {
      const auto scores = (*there)->score_ids(conversations);
      ASSERT_TRUE(scores.ok()) << scores.status().to_string();
      ASSERT_EQ(scores->size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR((*scores)[i], expected[i], 1e-4);
    }
  }
}

TEST_F(WorkerDevice, AnAdaptersBaseIsOffloaded) {
  PolicyOptions with_adapter = options(testing::tested_device());
  with_adapter.adapter = AdapterOptions{};
  with_adapter.adapter->lora.rank = 4;
  const auto there = make(with_adapter);
  with_adapter.learner.offload = {.parameters = true, .gradients = true};
  const auto away = make(with_adapter);
  ASSERT_TRUE(away && there);
  const auto batch = make(options(""))->generate(prompts(), false);
  ASSERT_TRUE(batch.ok());
  const std::vector<float> reference(batch->logprobs.size(), -1.0F);
  for (PolicyWorker* worker : {away.get(), there.get()}) {
    const auto learned = worker->update(*batch, reference, plan(*batch));
    ASSERT_TRUE(learned.ok()) << learned.status().to_string();
  }
  EXPECT_FALSE(has_memory(away->learner().model().parameters()));
  EXPECT_TRUE(has_memory(away->learner().model().trained_parameters()))
      << "an adapter is small, and stays";
  EXPECT_EQ(away->weights_checksum(), there->weights_checksum());
  EXPECT_EQ(*away->logprobs(*batch), *there->logprobs(*batch));
}

}  // namespace
}  // namespace rl
