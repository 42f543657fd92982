// SmolLM2-135M-Instruct from its GGUF file against transformers' numbers.
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rl/model/save.h"
#include "rl/model/transformer.h"
#include "tests/rl/model/fixtures.h"

namespace rl {
namespace {

TEST(SmolLm2, LogprobsAndGreedyTokensEqualTheReference) {
  const auto gguf = testing::smollm2_gguf();
  if (!gguf) GTEST_SKIP() << "SmolLM2 is not in the cache: .ci/fetch_wheels.sh model fetches it";
  const nlohmann::json reference =
      testing::read_json(testing::fixtures() / "smollm2" / "reference.json");
  if (!reference.is_array())
    GTEST_SKIP() << "no smollm2/reference.json under " << testing::fixtures();
  auto loaded = Transformer::load(*gguf);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  for (const auto& entry : reference) {
    auto ids = entry["prompt_ids"].get<std::vector<std::int32_t>>();
    const std::size_t prompt = ids.size();
    const auto greedy = entry["greedy_ids"].get<std::vector<std::int32_t>>();
    ids.insert(ids.end(), greedy.begin(), greedy.end());
    PackedBatch batch;
    batch.append(ids);
    const auto out = (*loaded)->token_logprobs(batch);
    ASSERT_TRUE(out.ok()) << out.status().to_string();
    const auto expected = entry["token_logprobs"].get<std::vector<float>>();
    ASSERT_EQ(static_cast<std::size_t>(out->logprobs_N.numel()), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(out->logprobs_N.const_data_ptr<float>()[i], expected[i], 1e-3) << i;
    const at::Tensor best = (*loaded)->logits(batch).value().argmax(1);
    for (std::size_t i = 0; i < greedy.size(); ++i) {
      EXPECT_EQ(best[static_cast<std::int64_t>(prompt + i) - 1].item<std::int64_t>(), greedy[i])
          << i;
    }
  }
}

}  // namespace
}  // namespace rl
