// Log-probabilities and entropies of the output layer, which never has all logits at once.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rl/model/ops.h"
#include "tests/rl/model/bound_layers.h"

namespace rl {
namespace {

constexpr std::int64_t kHeadRows = 50;
constexpr std::int64_t kVocabulary = 30;

bool are_equal_numbers(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, 1e-4, 1e-5);
}

class OpsLmHead : public ::testing::Test {
 protected:
  OpsLmHead() {
    for (std::int32_t row = 0; row < kHeadRows; ++row) targets_.push_back(row * 7 % kVocabulary);
  }
  at::Tensor numbers(at::IntArrayRef shape) { return at::randn(shape, random_); }

  struct Loss {
    ops::LmHeadOutputs out;
    at::Tensor dx, dw, db;
  };
  // What a loss of log-probabilities, entropies or both gives.
  Loss of_ops(const ops::LmHeadOptions& options, bool uses_logprobs, bool uses_entropies) {
    testing::TrainedWeights trained({{"weight", weight_}, {"bias", bias_}});
    const ops::Linear layer{.weight = trained["weight"], .bias = trained["bias"]};
    const at::Tensor x = x_.clone().set_requires_grad(true);
    Loss loss{ops::lm_head_logprobs({pool_, {}}, x, layer, targets_, options), {}, {}, {}};
    total(loss.out, uses_logprobs, uses_entropies).backward();
    loss.dx = x.grad();
    loss.dw = trained.gradient("weight");
    loss.db = trained.gradient("bias");
    return loss;
  }
  // The same by ATen, of all rows at once.
  Loss of_formulas(const ops::LmHeadOptions& options, bool uses_logprobs, bool uses_entropies) {
    const at::Tensor x = x_.clone().set_requires_grad(true);
    const at::Tensor weight = weight_.clone().set_requires_grad(true);
    const at::Tensor bias = bias_.clone().set_requires_grad(true);
    at::Tensor logits = at::mm(x, weight.t()) + bias;
    if (options.softcap > 0) logits = at::tanh(logits / options.softcap) * options.softcap;
    const at::Tensor log_p = at::log_softmax(logits / options.temperature, 1);
    const at::Tensor index = at::tensor(targets_).to(at::kLong).unsqueeze(1);
    Loss loss{{log_p.gather(1, index).squeeze(1), -(log_p.exp() * log_p).sum(1), {}}, {}, {}, {}};
    total(loss.out, uses_logprobs, uses_entropies).backward();
    loss.dx = x.grad();
    loss.dw = weight.grad();
    loss.db = bias.grad();
    return loss;
  }
  at::Tensor total(const ops::LmHeadOutputs& out, bool uses_logprobs, bool uses_entropies) const {
    if (!uses_entropies) return (out.logprob * share_).sum();
    const at::Tensor of_entropies = (out.entropy * entropy_share_).sum();
    return uses_logprobs ? of_entropies + (out.logprob * share_).sum() : of_entropies;
  }

  kernel::ThreadPool pool_{2};
  at::Generator random_ = at::make_generator<at::CPUGeneratorImpl>(5);
  const at::Tensor x_ = numbers({kHeadRows, 8});
  const at::Tensor weight_ = numbers({kVocabulary, 8}), bias_ = numbers({kVocabulary});
  const at::Tensor share_ = numbers({kHeadRows}), entropy_share_ = numbers({kHeadRows});
  std::vector<std::int32_t> targets_;
};

// Of chunks of 16 rows: none is kept for backward, the first, or all.
TEST_F(OpsLmHead, HasTheGradientsOfItsFormulaHoweverManyLogitsAreKept) {
  constexpr std::int64_t kRowBytes = kVocabulary * 4;
  for (const float softcap : {0.0F, 2.0F}) {
    ops::LmHeadOptions options;
    options.temperature = 0.7F;
    options.softcap = softcap;
    options.with_entropy = true;
    options.rows_max = 16;
    const Loss expected = of_formulas(options, true, true);
    for (const std::int64_t kept : {0, 20, 50}) {
      SCOPED_TRACE(std::to_string(softcap) + ", kept " + std::to_string(kept));
      options.kept_bytes_max = kept * kRowBytes;
      const Loss found = of_ops(options, true, true);
      EXPECT_TRUE(are_equal_numbers(found.out.logprob, expected.out.logprob));
      EXPECT_TRUE(are_equal_numbers(found.out.entropy, expected.out.entropy));
      EXPECT_TRUE(are_equal_numbers(found.dx, expected.dx));
      EXPECT_TRUE(are_equal_numbers(found.dw, expected.dw));
      EXPECT_TRUE(are_equal_numbers(found.db, expected.db));
    }
  }
}

TEST_F(OpsLmHead, ALossMayUseOneOfItsOutputsAlone) {
  ops::LmHeadOptions options;
  options.temperature = 1.3F;
  options.with_entropy = true;
  for (const bool uses_entropies : {true, false}) {
    const Loss expected = of_formulas(options, !uses_entropies, uses_entropies);
    const Loss found = of_ops(options, !uses_entropies, uses_entropies);
    EXPECT_TRUE(are_equal_numbers(found.dx, expected.dx)) << uses_entropies;
    EXPECT_TRUE(are_equal_numbers(found.dw, expected.dw)) << uses_entropies;
    EXPECT_TRUE(are_equal_numbers(found.db, expected.db)) << uses_entropies;
  }
}

}  // namespace
}  // namespace rl
