// Linear layers, norms and activations: values and gradients of the formulas that they stand for.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

#include "rl/model/ops.h"
#include "tests/rl/model/bound_layers.h"

namespace rl {
namespace {

constexpr std::int64_t kLinearRows = 150;  // of several blocks that threads take

bool agree(const at::Tensor& a, const at::Tensor& b) { return at::allclose(a, b, 1e-4, 1e-4); }

at::Tensor leaf(const at::Tensor& x) { return x.clone().set_requires_grad(true); }

class OpsLinear : public ::testing::Test {
 protected:
  at::Tensor numbers(at::IntArrayRef shape) { return at::randn(shape, random_); }

  kernel::ThreadPool pool_{2};
  const PassContext pass_{pool_, {}};
  at::Generator random_ = at::make_generator<at::CPUGeneratorImpl>(5);
};

// A norm of a kind by ATen.
at::Tensor normed_by_formula(NormKind kind, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias) {
  if (kind == NormKind::kLayer) return at::layer_norm(x, {x.size(1)}, weight, bias, 1e-5);
  const at::Tensor n = x * at::rsqrt((x * x).mean(1, /*keepdim=*/true) + 1e-5);
  return kind == NormKind::kRmsPlusOne ? n * (weight + 1) : n * weight;
}

// In one operation or in two.
TEST_F(OpsLinear, NormsAndTheirLayersHaveTheGradientsOfTheirFormulas) {
  const at::Tensor x = numbers({kLinearRows, 6}), share = numbers({kLinearRows, 5});
  const testing::TrainedWeights::Values values = {{"norm", numbers({6})},
                                                  {"norm bias", numbers({6})},
                                                  {"weight", numbers({5, 6})},
                                                  {"bias", numbers({5})},
                                                  {"other", numbers({5, 6})}};
  for (const NormKind kind : {NormKind::kRms, NormKind::kRmsPlusOne, NormKind::kLayer}) {
    for (const bool in_one : {true, false}) {
      SCOPED_TRACE(static_cast<int>(kind) * 10 + in_one);
      testing::TrainedWeights trained(values);
      ops::Norm norm{.kind = kind, .eps = 1e-5F, .weight = trained["norm"], .bias = {}};
      if (kind == NormKind::kLayer) norm.bias = trained["norm bias"];
      const std::vector<ops::Linear> layers = {
          {.weight = trained["weight"], .bias = trained["bias"]},
          {.weight = trained["other"], .bias = {}}};
      const at::Tensor own_x = leaf(x);
      const std::vector<at::Tensor> y =
          in_one ? ops::norm_linear(pass_, own_x, norm, layers)
                 : ops::linear(pass_, ops::norm(pass_, own_x, norm), layers);
      ((y[0] + y[1] * 2) * share).sum().backward();

      const auto leaves = trained.leaves();
      const at::Tensor all_x = leaf(x);
      const at::Tensor n = normed_by_formula(kind, all_x, leaves[0].second, leaves[1].second);
      const at::Tensor first = at::mm(n, leaves[2].second.t()) + leaves[3].second;
      const at::Tensor second = at::mm(n, leaves[4].second.t());
      ((first + second * 2) * share).sum().backward();
      EXPECT_TRUE(agree(y[0], first));
      EXPECT_TRUE(agree(y[1], second));
      EXPECT_TRUE(agree(own_x.grad(), all_x.grad()));
      for (const auto& [name, value] : leaves) {
        if (value.grad().defined()) {
          EXPECT_TRUE(agree(trained.gradient(name), value.grad())) << name;
        }
      }
    }
  }
}

TEST_F(OpsLinear, ALayerThatNothingDependsOnAddsNothing) {
  const at::Tensor x = numbers({kLinearRows, 6}), share = numbers({kLinearRows, 5});
  const at::Tensor own_x = leaf(x);
  testing::TrainedWeights trained({{"used", numbers({5, 6})}, {"unused", numbers({3, 6})}});
  const std::vector<ops::Linear> layers = {{.weight = trained["used"], .bias = {}},
                                           {.weight = trained["unused"], .bias = {}}};
  (ops::linear(pass_, own_x, layers)[0] * share).sum().backward();
  EXPECT_TRUE(agree(own_x.grad(), at::mm(share, trained["used"].value)));
  EXPECT_TRUE(agree(trained.gradient("used"), at::mm(share.t(), x)));
  EXPECT_TRUE(trained.gradient("unused").equal(at::zeros({3, 6})));
}

TEST_F(OpsLinear, ASecondPassAddsToTheGradientOfTheFirst) {
  const at::Tensor x = numbers({kLinearRows, 6}), share = numbers({kLinearRows, 5});
  testing::TrainedWeights trained({{"weight", numbers({5, 6})}, {"bias", numbers({5})}});
  const ops::Linear layer{.weight = trained["weight"], .bias = trained["bias"]};
  for (int pass = 0; pass < 2; ++pass)
    (ops::linear(pass_, leaf(x), layer) * share).sum().backward();
  EXPECT_TRUE(agree(trained.gradient("weight"), at::mm(share.t(), x) * 2));
  EXPECT_TRUE(agree(trained.gradient("bias"), share.sum(0) * 2));
}

at::Tensor activated_by_formula(kernel::Activation activation, const at::Tensor& x) {
  switch (activation) {
    case kernel::Activation::kSilu: return at::silu(x);
    case kernel::Activation::kGelu: return at::gelu(x);
    case kernel::Activation::kGeluTanh: return at::gelu(x, "tanh");
    case kernel::Activation::kSigmoid: return at::sigmoid(x);
    case kernel::Activation::kRelu: break;
  }
  return at::relu(x);
}

// With a gate and without, in one operation or in two.
TEST_F(OpsLinear, ActivatedProductsHaveTheGradientsOfTheirFormulas) {
  using kernel::Activation;
  const at::Tensor gate = numbers({kLinearRows, 6}), up = numbers({kLinearRows, 6});
  const at::Tensor share = numbers({kLinearRows, 5}), weight = numbers({5, 6});
  for (const Activation activation : {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kRelu, Activation::kSigmoid}) {
    for (const bool gated : {true, false}) {
      for (const bool in_one : {true, false}) {
        SCOPED_TRACE(static_cast<int>(activation) * 100 + gated * 10 + in_one);
        testing::TrainedWeights trained({{"down", weight}});
        const ops::Linear down{.weight = trained["down"], .bias = {}};
        const at::Tensor own_gate = leaf(gate), own_up = gated ? leaf(up) : at::Tensor();
        const at::Tensor y =
            in_one ? ops::activate_linear(pass_, activation, own_gate, own_up, down)
                   : ops::linear(pass_, ops::activate(pass_, activation, own_gate, own_up), down);
        (y * share).sum().backward();

        const at::Tensor all_gate = leaf(gate), all_up = leaf(up), all_down = leaf(weight);
        at::Tensor product = activated_by_formula(activation, all_gate);
        if (gated) product = product * all_up;
        const at::Tensor expected = at::mm(product, all_down.t());
        (expected * share).sum().backward();
        EXPECT_TRUE(agree(y, expected));
        EXPECT_TRUE(agree(own_gate.grad(), all_gate.grad()));
        if (gated) {
          EXPECT_TRUE(agree(own_up.grad(), all_up.grad()));
        }
        EXPECT_TRUE(agree(trained.gradient("down"), all_down.grad()));
      }
    }
  }
}

TEST_F(OpsLinear, ARowThatIsTakenTwiceHasBothGradients) {
  const at::Tensor x = leaf(numbers({4, 3})), share = numbers({3, 3});
  const std::vector<std::int64_t> taken = {2, 0, 2};
  const at::Tensor y = ops::select_rows(x, taken);
  EXPECT_TRUE(y[0].equal(x[2]));
  EXPECT_TRUE(y[1].equal(x[0]));
  (y * share).sum().backward();
  EXPECT_TRUE(agree(x.grad()[2], share[0] + share[2]));
  EXPECT_TRUE(agree(x.grad()[0], share[1]));
  EXPECT_TRUE(x.grad()[1].equal(at::zeros({3})));
}

}  // namespace
}  // namespace rl
