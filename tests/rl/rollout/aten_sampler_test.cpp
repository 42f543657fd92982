#include "rl/rollout/aten_sampler.h"

#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace rl {
namespace {

// Rows over a vocabulary of several chunks of sums, and what is asked of each.
struct Rows {
  std::int64_t vocab = 2500;
  std::vector<float> logits;
  std::vector<SamplingParams> params;

  std::span<const float> logits_of(std::size_t row) const {
    return std::span(logits).subspan(row * static_cast<std::size_t>(vocab),
                                     static_cast<std::size_t>(vocab));
  }
  at::Tensor tensor() const {
    return at::from_blob(const_cast<float*>(logits.data()),
                         {static_cast<std::int64_t>(params.size()), vocab},
                         at::TensorOptions().dtype(at::kFloat));
  }
  std::vector<SampleRow> samples() const {
    std::vector<SampleRow> rows;
    for (std::size_t i = 0; i < params.size(); ++i)
      rows.push_back({.params = &params[i],
                      .logits = logits_of(i),
                      .history = {},
                      .forbidden = {},
                      .sample = i % 3,
                      .position = i});
    return rows;
  }
};

Rows random_rows(std::size_t count) {
  Rows rows;
  std::mt19937 generator(5);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  for (std::size_t i = 0; i < count * static_cast<std::size_t>(rows.vocab); ++i)
    rows.logits.push_back(std::round(normal(generator) * 8) / 8);  // equals are many
  for (std::size_t i = 0; i < count; ++i) {
    SamplingParams params;
    params.temperature = std::array{1.0F, 0.0F, 0.5F, 1.7F}[generator() % 4];
    params.top_k = std::array{0, 0, 1, 40, 100000}[generator() % 5];
    params.top_p = std::array{1.0F, 1.0F, 0.9F, 0.2F}[generator() % 4];
    params.min_p = std::array{0.0F, 0.0F, 0.1F}[generator() % 3];
    params.seed = generator();
    rows.params.push_back(params);
  }
  return rows;
}

std::vector<SampledToken> by_aten(const Rows& rows) {
  std::vector<std::int64_t> own;
  for (std::size_t i = 0; i < rows.params.size(); ++i) own.push_back(static_cast<std::int64_t>(i));
  return sample_by_aten(rows.tensor(), own, rows.samples());
}

TEST(AtenSampler, DrawsWhatTheHostDraws) {
  const Rows rows = random_rows(1500);
  std::vector<SampledToken> expected(rows.params.size());
  kernel::ThreadPool pool(1);
  sample_tokens(pool, rows.samples(), expected);
  const std::vector<SampledToken> found = by_aten(rows);
  std::size_t differ = 0;  // by the last bits of a sum
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].id != expected[i].id)
      ++differ;
    else
      ASSERT_NEAR(found[i].logprob, expected[i].logprob, 1e-5) << i;
  }
  EXPECT_LE(differ, 1U);
}

TEST(AtenSampler, LetsSamplesOfOnePromptShareARow) {
  Rows rows = random_rows(1);
  rows.params.assign(300, SamplingParams{.seed = 3});
  std::vector<SampleRow> samples;
  for (std::size_t i = 0; i < rows.params.size(); ++i)
    samples.push_back({.params = &rows.params[i],
                       .logits = rows.logits_of(0),
                       .history = {},
                       .forbidden = {},
                       .sample = i});
  std::vector<SampledToken> expected(samples.size());
  kernel::ThreadPool pool(1);
  sample_tokens(pool, samples, expected);
  const at::Tensor logits =
      at::from_blob(rows.logits.data(), {1, rows.vocab}, at::TensorOptions().dtype(at::kFloat));
  const std::vector<SampledToken> found =
      sample_by_aten(logits, std::vector<std::int64_t>(samples.size(), 0), samples);
  for (std::size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(found[i].id, expected[i].id) << i;
}

TEST(AtenSampler, ChoosesNothingWhereLogitsAreNotFinite) {
  Rows rows = random_rows(12);
  const std::array values{std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()};
  const std::array kinds{SamplingParams{.temperature = 0.0F}, SamplingParams{},
                         SamplingParams{.top_k = 5}, SamplingParams{.top_p = 0.5F}};
  const auto vocab = static_cast<std::size_t>(rows.vocab);
  for (std::size_t i = 0; i < 12; ++i) {
    rows.params[i] = kinds[i % 4];
    if (i / 4 == 2)
      std::fill_n(rows.logits.begin() + static_cast<std::ptrdiff_t>(i * vocab), vocab, values[2]);
    else
      rows.logits[i * vocab + 1700] = values[i / 4];
  }
  for (const SampledToken& token : by_aten(rows)) EXPECT_EQ(token.id, -1);
}

TEST(AtenSampler, LeavesTheRestToTheHost) {
  const std::vector<std::int32_t> history{1, 2, 3}, forbidden{4};
  const auto fits = [&](const SamplingParams& params, std::span<const std::int32_t> banned = {}) {
    return fits_aten_sampler(
        {.params = &params, .logits = {}, .history = history, .forbidden = banned, .generated = 1});
  };
  EXPECT_TRUE(fits({.temperature = 0.5F, .top_p = 0.9F, .top_k = 3, .min_p = 0.1F}));
  EXPECT_FALSE(fits({}, forbidden));
  EXPECT_FALSE(fits({.repetition_penalty = 1.1F}));
  EXPECT_FALSE(fits({.presence_penalty = 0.1F}));
  EXPECT_FALSE(fits({.logit_bias = {{.id = 1, .bias = 1.0F}}}));
  EXPECT_FALSE(fits({.top_logprobs = 1}));
  EXPECT_FALSE(fits({.processed_logprobs = true}));
}

}  // namespace
}  // namespace rl
