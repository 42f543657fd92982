// The engine and the trainer's pass on a device: the numbers of the CPU, and no tensor where it
// must not be.
#include "rl/model/device.h"
#include "rl/model/offload.h"
#include "stand_in.h"
#include "tests/rl/model/fixtures.h"
#include "tests/rl/rollout/tiny_model.h"

namespace rl {
namespace {

using testing::engine_logprobs;
using testing::largest_difference;
using testing::make_engine;
using testing::sampled_requests;
using testing::tiny_model;
using testing::trainer_logprobs;

constexpr double kNear = 1e-4;

class EngineDevice : public testing::DeviceTest {};

TEST_F(EngineDevice, GeneratesWithTheNumbersOfTheCpu) {
  int checked = 0;
  for (const std::filesystem::path& folder : testing::model_cases()) {
    SCOPED_TRACE(folder.filename().string());
    auto here = Transformer::load(folder);
    if (!here.ok() && here.status().code() == runtime::ErrorCode::kUnimplemented) continue;
    ASSERT_TRUE(here.ok()) << here.status().to_string();
    if ((*here)->config().task != ModelTask::kCausalLm) continue;
    auto there = Transformer::load(folder, {.device = testing::tested_device()});
    ASSERT_TRUE(there.ok()) << there.status().to_string();
    std::vector<Request> requests =
        sampled_requests(3, 3,
                         {.prompt_max = 12,
                          .new_max = 5,
                          .n_max = 2,
                          .vocab = static_cast<std::int32_t>((*here)->config().vocab_size)});
    for (Request& request : requests) request.sampling.prompt_logprobs = true;
    EngineOptions options{.step_tokens_max = 11, .device = testing::tested_device()};
    options.cache.bytes_max =
        16 * make_engine(**here)
                 ->cache()
                 .block_bytes();  // the fallback copies all of it for every operation on it
    const auto engine = make_engine(**there, options);
    const auto completions = engine->generate(requests);
    ASSERT_TRUE(completions.ok()) << completions.status().to_string();
    for (const Completion& completion : *completions)
      ASSERT_TRUE(completion.status.ok()) << completion.status.to_string();
    EXPECT_LE(largest_difference(engine_logprobs(*completions),
                                 trainer_logprobs(**here, requests, *completions)),
              kNear);
    ++checked;
  }
  EXPECT_GE(checked, 2);
}

TEST_F(EngineDevice, EverySamplerAndPreemptionRuns) {
  const auto source = tiny_model(6);
  const auto device = find_device(testing::tested_device());
  ASSERT_TRUE(device.ok());
  const Transformer model(testing::tiny_config(), source->parameters().to(*device));
  std::vector<Request> requests = sampled_requests(6, 2, {.prompt_max = 30, .new_max = 12});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SamplingParams& sampling = requests[i].sampling;
    requests[i].prompt_ids.insert(requests[i].prompt_ids.begin(), 20, 9);
    if (i == 0) sampling.temperature = 0.0F;
    if (i == 1) sampling.top_k = 7;
    if (i == 2) sampling.top_p = 0.9F;
    if (i == 3) sampling.repetition_penalty = 1.2F;
    if (i == 4) sampling.top_logprobs = 3;
  }
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
    EngineOptions options{.sequences_max = 6,
                          .step_tokens_max = 50,
                          .device = testing::tested_device(),
                          .preemption = preemption};
    options.cache.bytes_max = 8 * make_engine(*source)->cache().block_bytes();
    const auto engine = make_engine(model, options);
    const auto completions = engine->generate(requests);
    ASSERT_TRUE(completions.ok()) << completions.status().to_string();
    for (const Completion& completion : *completions)
      EXPECT_TRUE(completion.status.ok()) << completion.status.to_string();
    EXPECT_GT(engine->stats().preemptions, 0);
    EXPECT_EQ(engine->cache().free_blocks(), engine->cache().blocks());
  }
}

TEST_F(EngineDevice, AModelThatLeavesItsDeviceGeneratesTheSame) {
  const auto source = tiny_model(6);
  const auto device = find_device(testing::tested_device());
  ASSERT_TRUE(device.ok());
  const Transformer staying(testing::tiny_config(), source->parameters().to(*device));
  Transformer leaving(testing::tiny_config(), source->parameters().to(*device));
  const std::vector<Request> requests = sampled_requests(3, 2, {.prompt_max = 8, .new_max = 4});
  EngineOptions options{
      .sequences_max = 6, .step_tokens_max = 50, .device = testing::tested_device()};
  options.cache.bytes_max = 8 * make_engine(*source)->cache().block_bytes();
  const auto expected = make_engine(staying, options)->generate(requests);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  const auto engine = make_engine(leaving, options);
  Offload offload(leaving, {.parameters = true});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(leaving.parameters().arena().storage().nbytes(), 0U);
    const Offload::Stay here = offload.stay();
    const auto found = engine->generate(requests);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    ASSERT_EQ(found->size(), expected->size());
    for (std::size_t i = 0; i < found->size(); ++i) {
      EXPECT_EQ((*found)[i].ids, (*expected)[i].ids);
      EXPECT_EQ((*found)[i].logprobs, (*expected)[i].logprobs);
    }
  }
}

}  // namespace
}  // namespace rl
