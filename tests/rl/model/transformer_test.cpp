// Cases outside the reference numbers: independence of the batch, options, gradients against finite
// differences, limits.
#include "rl/model/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

ModelConfig tiny() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 24;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.intermediate_size = 40;
  config.vocab_size = 50;
  config.max_position_embeddings = 700;
  config.initializer_range = 0.3F;
  return config;
}

std::unique_ptr<Transformer> model(bool gradients, bool tied = false) {
  ModelConfig config = tiny();
  config.tie_word_embeddings = tied;
  auto made = std::make_unique<Transformer>(config, Parameters::random(config, 3));
  if (gradients) made->enable_gradients();
  return made;
}

std::vector<std::int32_t> sequence(int length, int seed) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < length; ++i) ids.push_back((seed * 31 + i * i * 7 + i) % 50);
  return ids;
}

PackedBatch batch_of(const std::vector<std::vector<std::int32_t>>& sequences,
                     std::int64_t first_target = 1) {
  PackedBatch batch;
  for (const auto& ids : sequences) batch.append(ids, first_target);
  return batch;
}

// A loss whose gradient reaches every output with its own weight.
at::Tensor weighted(const TokenLogprobs& out) {
  const at::Tensor weights =
      at::arange(1, out.logprobs_N.size(0) + 1, out.logprobs_N.options()).sin();
  at::Tensor loss = (out.logprobs_N * weights).sum();
  return out.entropy_N.defined() ? loss + (out.entropy_N * weights.cos()).sum() : loss;
}

at::Tensor gradient_of(Transformer& transformer, const PackedBatch& batch,
                       const LogprobOptions& options) {
  transformer.zero_gradients();
  weighted(transformer.token_logprobs(batch, options).value()).backward();
  return transformer.gradients().arena().clone();
}

// A sum begins by being written over the one before, which is no other number than adding to zeros.
TEST(Transformer, AGradientOverTheOneBeforeHasTheBitsOfASumFromZero) {
  for (const bool tied : {false, true}) {
    const PackedBatch batch = batch_of({sequence(40, 1), sequence(9, 2)});
    const auto again = model(true, tied), from_zero = model(true, tied);
    (void)gradient_of(*again, batch_of({sequence(300, 3)}), {});
    GradientArena& zeros = from_zero->gradient_arena();
    for (const ParameterSpec& spec : zeros.memory().specs())
      (void)zeros.sum_of(zeros.memory().view(spec))->begin();
    weighted(from_zero->token_logprobs(batch).value()).backward();
    EXPECT_TRUE(gradient_of(*again, batch, {}).equal(from_zero->gradients().arena())) << tied;
  }
}

TEST(Transformer, PackedSequencesHaveTheBitsTheyHaveAlone) {
  const auto transformer = model(false);
  const std::vector<std::vector<std::int32_t>> sequences = {sequence(5, 1), sequence(37, 2),
                                                            sequence(2, 3), sequence(300, 4)};
  const at::Tensor packed = transformer->token_logprobs(batch_of(sequences)).value().logprobs_N;
  std::int64_t offset = 0;
  for (const auto& ids : sequences) {
    const at::Tensor alone = transformer->token_logprobs(batch_of({ids})).value().logprobs_N;
    EXPECT_TRUE(packed.narrow(0, offset, alone.size(0)).equal(alone)) << ids.size();
    offset += alone.size(0);
  }
  EXPECT_EQ(offset, packed.size(0));
}

TEST(Transformer, GraphDoesNotChangeTheBits) {
  const auto transformer = model(true);
  const PackedBatch batch = batch_of({sequence(40, 1), sequence(9, 2)}, 4);
  const TokenLogprobs with_graph =
      transformer->token_logprobs(batch, {.with_entropy = true}).value();
  EXPECT_TRUE(with_graph.logprobs_N.requires_grad());
  c10::AutoGradMode off(false);
  const TokenLogprobs without =
      transformer->token_logprobs(batch, {.with_entropy = true, .logit_rows_max = 3}).value();
  EXPECT_FALSE(without.logprobs_N.requires_grad());
  EXPECT_TRUE(with_graph.logprobs_N.equal(without.logprobs_N));
  EXPECT_TRUE(with_graph.entropy_N.equal(without.entropy_N));
}

TEST(Transformer, LogprobsAndEntropyAreThoseOfTheLogits) {
  const auto transformer = model(false);
  const PackedBatch batch = batch_of({sequence(12, 5)});
  const at::Tensor logits =
      transformer->logits(batch).value().narrow(0, 0, 11).to(at::kDouble) / 0.7;
  const TokenLogprobs out =
      transformer->token_logprobs(batch, {.temperature = 0.7F, .with_entropy = true}).value();
  const at::Tensor all = logits.log_softmax(1);
  for (std::int64_t i = 0; i < 11; ++i) {
    EXPECT_NEAR(out.logprobs_N[i].item<double>(),
                all[i][batch.ids[static_cast<std::size_t>(i) + 1]].item<double>(), 1e-5);
    EXPECT_NEAR(out.entropy_N[i].item<double>(), -(all[i].exp() * all[i]).sum().item<double>(),
                1e-5);
  }
}

TEST(Transformer, GradientsEqualFiniteDifferences) {
  for (const bool tied : {false, true}) {
    const auto transformer = model(true, tied);
    const PackedBatch batch = batch_of({sequence(9, 1), sequence(6, 2)}, 2);
    const LogprobOptions options{.temperature = 0.8F, .with_entropy = true};
    const at::Tensor gradient = gradient_of(*transformer, batch, options);
    const auto loss = [&] {
      c10::AutoGradMode off(false);
      return weighted(transformer->token_logprobs(batch, options).value()).item<double>();
    };
    for (const ParameterSpec& spec : transformer->parameters().specs()) {
      const at::Tensor analytic = gradient.narrow(0, spec.offset, spec.count);
      const double norm = analytic.norm().item<double>();
      ASSERT_GT(norm, 0.0) << spec.name;
      // Along its own gradient a function rises by the gradient's norm.
      at::Tensor values = transformer->parameters().view(spec).view({-1});
      const at::Tensor before = values.clone();
      const double step = 2e-3;
      values.copy_(before + analytic * (step / norm));
      const double up = loss();
      values.copy_(before - analytic * (step / norm));
      const double down = loss();
      values.copy_(before);
      EXPECT_NEAR((up - down) / (2 * step), norm, 0.02 * norm + 5e-3)
          << spec.name << (tied ? " tied" : "");
    }
  }
}

TEST(Transformer, LongSequencesBackpropagateInBlocks) {
  // 600 tokens take three blocks of queries, whose contributions to keys and values must add up.
  const auto transformer = model(true);
  const std::vector<std::int32_t> ids = sequence(600, 1);
  const at::Tensor gradient = gradient_of(*transformer, batch_of({ids}), {});
  const auto loss = [&] {
    c10::AutoGradMode off(false);
    return weighted(transformer->token_logprobs(batch_of({ids})).value()).item<double>();
  };
  for (const char* name :
       {"model.layers.0.self_attn.k_proj.weight", "model.layers.1.self_attn.v_proj.weight"}) {
    const ParameterSpec& spec = *transformer->parameters().find(name);
    const at::Tensor analytic = gradient.narrow(0, spec.offset, spec.count);
    const double norm = analytic.norm().item<double>();
    at::Tensor values = transformer->parameters().view(spec).view({-1});
    const at::Tensor before = values.clone();
    const double step = 2e-3;
    values.copy_(before + analytic * (step / norm));
    const double up = loss();
    values.copy_(before - analytic * (step / norm));
    const double down = loss();
    values.copy_(before);
    EXPECT_NEAR((up - down) / (2 * step), norm, 0.02 * norm + 1e-2) << name;
  }
}

TEST(Transformer, RecomputedLogitsGiveTheSameGradient) {
  const auto transformer = model(true);
  const PackedBatch batch = batch_of({sequence(30, 1), sequence(20, 2)}, 5);
  const at::Tensor kept =
      gradient_of(*transformer, batch, {.with_entropy = true, .logit_rows_max = 8});
  const at::Tensor recomputed = gradient_of(
      *transformer, batch, {.with_entropy = true, .logit_rows_max = 8, .kept_bytes_max = 0});
  EXPECT_TRUE(kept.equal(recomputed));
}

TEST(Transformer, GradientsOfMicroBatchesAddUp) {
  const auto transformer = model(true);
  const auto add = [&](const PackedBatch& batch) {
    (-transformer->token_logprobs(batch).value().logprobs_N.sum()).backward();
  };
  add(batch_of({sequence(30, 1), sequence(20, 2)}));
  const at::Tensor whole = transformer->gradients().arena().clone();
  transformer->zero_gradients();
  add(batch_of({sequence(30, 1)}));
  add(batch_of({sequence(20, 2)}));
  EXPECT_LE((transformer->gradients().arena() - whole).norm().item<double>(),
            1e-6 * whole.norm().item<double>());
}

TEST(Transformer, BackwardTwiceIsAnErrorNotAWrongGradient) {
  const auto transformer = model(true);
  const at::Tensor loss =
      transformer->token_logprobs(batch_of({sequence(5, 1)})).value().logprobs_N.sum();
  loss.backward();
  EXPECT_ANY_THROW(loss.backward());
}

TEST(Transformer, BadBatchesAreRefused) {
  const auto transformer = model(false);
  const auto refused = [&](const PackedBatch& batch, const char* text) {
    const auto out = transformer->token_logprobs(batch);
    ASSERT_FALSE(out.ok()) << text;
    EXPECT_EQ(out.status().code(), runtime::ErrorCode::kInvalidArgument);
    EXPECT_NE(out.status().message().find(text), std::string::npos) << out.status().message();
  };
  refused({}, "no targets");
  refused(batch_of({{1, 50}}), "token 1 is 50");
  refused(batch_of({{-1, 3}}), "token 0 is -1");
  refused(batch_of({sequence(701, 1)}), "701");
  PackedBatch batch = batch_of({{1, 2, 3}});
  batch.targets = {0};
  refused(batch, "first token");
  batch.targets = {2, 1};
  refused(batch, "out of order");
  batch.targets = {3};
  refused(batch, "out of range");
  batch = batch_of({{1, 2, 3}});
  batch.cu_seqlens = {0, 2};
  refused(batch, "boundaries");
  batch.cu_seqlens = {0, 0, 3};
  refused(batch, "empty");
  EXPECT_FALSE(transformer->token_logprobs(batch_of({{1, 2}}), {.temperature = 0.0F}).ok());
  EXPECT_FALSE(transformer->token_logprobs(batch_of({{1, 2}}), {.temperature = NAN}).ok());
}

}  // namespace
}  // namespace rl
