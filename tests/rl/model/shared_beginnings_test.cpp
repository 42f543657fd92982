// Samples of one prompt: its tokens are computed once, and nothing but time tells.
#include "rl/model/shared_beginnings.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "rl/model/forward.h"
#include "rl/model/head.h"
#include "rl/model/transformer.h"

namespace rl {
namespace {

using Ids = std::vector<std::int32_t>;

ModelConfig model_with_window(std::int64_t window = 0) {
  ModelConfig config;
  config.family = window > 0 ? "mistral" : "llama";
  config.hidden_size = 24;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.intermediate_size = 40;
  config.vocab_size = 50;
  config.max_position_embeddings = 700;
  config.initializer_range = 0.3F;
  if (window > 0) config.windows = {window, window};
  return config;
}

std::unique_ptr<Transformer> model_by(ModelConfig config) {
  Parameters parameters = Parameters::random(config, 3);
  auto made = std::make_unique<Transformer>(std::move(config), std::move(parameters));
  made->enable_gradients();
  return made;
}

Ids ids_below_50(int length, int seed) {
  Ids ids;
  for (int i = 0; i < length; ++i) ids.push_back((seed * 31 + i * i * 7 + i) % 50);
  return ids;
}

Ids joined(Ids first, const Ids& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Two prompts that begin alike, three responses each: one of them again the one before it, one that
// only goes on from it.
PackedBatch groups() {
  PackedBatch batch;
  const Ids system = ids_below_50(21, 1);
  const Ids response = ids_below_50(9, 5);
  for (const Ids& prompt :
       {joined(system, ids_below_50(30, 2)), joined(system, ids_below_50(8, 3))}) {
    const auto length = static_cast<std::int64_t>(prompt.size());
    batch.append(joined(prompt, response), length);
    batch.append(joined(prompt, response), length);
    batch.append(joined(prompt, ids_below_50(17, 6)), length);
  }
  batch.append(joined(system, ids_below_50(270, 7)),
               1);  // several blocks of queries, from amid the sequence
  batch.append(joined(joined(system, ids_below_50(270, 7)), ids_below_50(300, 8)), 100);
  return batch;
}

PackedBatch apart(PackedBatch batch) {
  batch.share_beginnings = false;
  return batch;
}

at::Tensor weights_like(const at::Tensor& t) {
  return at::arange(1, t.numel() + 1, t.options()).sin().view(t.sizes());
}

const auto kAlike = [](std::size_t, std::size_t) { return true; };

TEST(SharedBeginnings, AreThoseOfTheSequenceBefore) {
  EXPECT_EQ(shared_beginnings(groups(), kAlike),
            (std::vector<std::int64_t>{0, 60, 51, 21, 38, 29, 21, 291}));
}

TEST(SharedBeginnings, OfOtherAnglesAreNone) {
  const auto shared = shared_beginnings(
      groups(), [](std::size_t a, std::size_t b) { return a != 0 && b == a + 1; });
  EXPECT_EQ(shared[1], 0);
  EXPECT_EQ(shared[2], 51);
}

TEST(SharedBeginnings, AreLeftWhereTheySaveLittle) {
  PackedBatch batch;
  batch.append(joined({1, 2, 3}, ids_below_50(40, 1)));
  batch.append(joined({1, 2, 3}, ids_below_50(39, 2)));
  EXPECT_EQ(shared_beginnings(batch, kAlike), (std::vector<std::int64_t>{0, 0}));
}

TEST(SharedBeginnings, RowsAreComputedOnce) {
  const auto transformer = model_by(model_with_window());
  const PackedBatch batch = groups();
  const forward::Rows rows(batch, transformer->rope(), true);
  EXPECT_EQ(rows.count(), batch.tokens() - (60 + 51 + 21 + 38 + 29 + 21 + 291));
  for (std::int64_t token = 0; token < batch.tokens(); ++token) {
    EXPECT_EQ(rows.ids[static_cast<std::size_t>(rows.row(token))],
              batch.ids[static_cast<std::size_t>(token)]);
  }
  EXPECT_EQ(rows.sequences[1].rows(), 0);  // the sample before it again
  EXPECT_FALSE(forward::Rows(batch, transformer->rope(), false).shared());
}

class Sharing : public ::testing::TestWithParam<std::int64_t> {};  // the window's tokens

TEST_P(Sharing, DoesNotChangeABit) {
  const auto transformer = model_by(model_with_window(GetParam()));
  for (const bool graph : {false, true}) {
    c10::AutoGradMode mode(graph);
    const LogprobOptions options{.temperature = 0.8F, .with_entropy = true};
    const TokenLogprobs shared = transformer->token_logprobs(groups(), options).value();
    const TokenLogprobs alone = transformer->token_logprobs(apart(groups()), options).value();
    EXPECT_TRUE(shared.logprobs_N.equal(alone.logprobs_N));
    EXPECT_TRUE(shared.entropy_N.equal(alone.entropy_N));
  }
  EXPECT_TRUE(
      transformer->logits(groups()).value().equal(transformer->logits(apart(groups())).value()));
}

TEST_P(Sharing, GivesTheSameGradient) {
  const auto transformer = model_by(model_with_window(GetParam()));
  const auto gradient = [&](const PackedBatch& batch) {
    transformer->zero_gradients();
    const TokenLogprobs out = transformer->token_logprobs(batch, {.with_entropy = true}).value();
    ((out.logprobs_N * weights_like(out.logprobs_N)).sum() +
     (out.entropy_N * weights_like(out.entropy_N).cos()).sum())
        .backward();
    return transformer->gradients().arena().clone();
  };
  const at::Tensor alone = gradient(apart(groups()));
  const at::Tensor shared = gradient(groups());
  EXPECT_LE((shared - alone).norm().item<double>(), 1e-6 * alone.norm().item<double>());
  EXPECT_TRUE(shared.equal(gradient(groups())));
}

INSTANTIATE_TEST_SUITE_P(Windows, Sharing, ::testing::Values(0, 16));

TEST(SharedBeginnings, HeadsGiveEveryTokenItsValue) {
  const auto transformer = model_by(with_head(model_with_window(), value_head()).value());
  const auto values = [&](const PackedBatch& batch) {
    return transformer->head(batch, value_head().name).value();
  };
  const at::Tensor shared = values(groups());
  const at::Tensor alone = values(apart(groups()));
  EXPECT_TRUE(shared.equal(alone));
  const auto gradient = [&](const at::Tensor& out) {
    transformer->zero_gradients();
    (out * weights_like(out)).sum().backward();
    return transformer->gradients().arena().clone();
  };
  const at::Tensor expected = gradient(alone);
  EXPECT_LE((gradient(shared) - expected).norm().item<double>(),
            1e-6 * expected.norm().item<double>());
  const OutputOptions last{
      .logprobs = std::nullopt, .heads = {value_head().name}, .last_tokens_only = true};
  EXPECT_TRUE(transformer->outputs(groups(), last)
                  .value()
                  .heads[0]
                  .equal(transformer->outputs(apart(groups()), last).value().heads[0]));
}

TEST(SharedBeginnings, AreTheSameByAten) {
  const auto transformer = model_by(model_with_window(16));
  c10::AutoGradMode off(false);
  const auto scored = [&](const PackedBatch& batch) {
    return transformer->token_logprobs(batch, {}, {.by_aten = true}).value().logprobs_N;
  };
  const at::Tensor shared = scored(groups()), alone = scored(apart(groups()));
  EXPECT_LE((shared - alone).abs().max().item<double>(), 1e-4);
}

}  // namespace
}  // namespace rl
