// Attention and rotations: values and gradients of the formulas that they stand for.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "rl/model/ops.h"

namespace rl {
namespace {

using forward::AttentionShape;

// The queries of the longer one are more than what backward computes at a time.
const std::vector<std::int64_t> kLengths = {5, 300, 1};

PackedBatch batch_of_lengths() {
  PackedBatch batch;
  for (const std::int64_t length : kLengths)
    batch.append(std::vector<std::int32_t>(static_cast<std::size_t>(length), 1));
  return batch;
}

at::Tensor copied_leaf(const at::Tensor& x) { return x.clone().set_requires_grad(true); }

// One sequence, [T, heads * D], by ATen.
at::Tensor attention_by_formula(const AttentionShape& shape, const at::Tensor& q,
                                const at::Tensor& k, const at::Tensor& v) {
  const std::int64_t tokens = q.size(0), group = shape.heads / shape.kv_heads;
  const auto of_heads = [&](const at::Tensor& t, std::int64_t heads) {
    return t.reshape({tokens, heads, shape.head_dim})
        .repeat_interleave(shape.heads / heads, 1)
        .transpose(0, 1);
  };
  at::Tensor scores =
      at::matmul(of_heads(q, shape.heads), of_heads(k, shape.heads / group).transpose(1, 2)) *
      shape.scale;
  if (shape.softcap > 0) scores = at::tanh(scores / shape.softcap) * shape.softcap;
  const at::Tensor queries = at::arange(tokens).unsqueeze(1), keys = at::arange(tokens);
  at::Tensor hidden = keys > queries;
  if (shape.window > 0) hidden = hidden.logical_or(keys <= queries - shape.window);
  scores = scores.masked_fill(hidden, -std::numeric_limits<float>::infinity());
  return at::matmul(at::softmax(scores, 2), of_heads(v, shape.heads / group))
      .transpose(0, 1)
      .reshape({tokens, shape.heads * shape.head_dim});
}

TEST(OpsAttention, HasTheGradientsOfItsFormula) {
  kernel::ThreadPool pool(2);
  const PackedBatch batch = batch_of_lengths();
  const Rope rope({}, 0);
  const auto rows = std::make_shared<const forward::Rows>(batch, rope, /*share=*/false);
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(5);
  const at::Tensor q = at::randn({rows->count(), 24}, random);
  const at::Tensor k = at::randn({rows->count(), 12}, random);
  const at::Tensor v = at::randn({rows->count(), 12}, random);
  const at::Tensor share = at::randn({rows->count(), 24}, random);
  for (const float softcap : {0.0F, 1.5F}) {
    for (const std::int64_t window : {0, 7}) {
      SCOPED_TRACE(std::to_string(softcap) + ", window " + std::to_string(window));
      const AttentionShape shape{.heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 6,
                                 .scale = 0.5F,
                                 .softcap = softcap,
                                 .window = window};
      const at::Tensor own_q = copied_leaf(q), own_k = copied_leaf(k), own_v = copied_leaf(v);
      const at::Tensor y = ops::attention({pool, {}}, rows, shape, own_q, own_k, own_v);
      (y * share).sum().backward();

      const at::Tensor all_q = copied_leaf(q), all_k = copied_leaf(k), all_v = copied_leaf(v);
      std::vector<at::Tensor> parts;
      std::int64_t first = 0;
      for (const std::int64_t length : kLengths) {
        const auto part = [&](const at::Tensor& t) { return t.narrow(0, first, length); };
        parts.push_back(attention_by_formula(shape, part(all_q), part(all_k), part(all_v)));
        first += length;
      }
      const at::Tensor expected = at::cat(parts);
      (expected * share).sum().backward();
      EXPECT_TRUE(at::allclose(y, expected, 1e-4, 1e-5));
      EXPECT_TRUE(at::allclose(own_q.grad(), all_q.grad(), 1e-4, 1e-4));
      EXPECT_TRUE(at::allclose(own_k.grad(), all_k.grad(), 1e-4, 1e-4));
      EXPECT_TRUE(at::allclose(own_v.grad(), all_v.grad(), 1e-4, 1e-4));
    }
  }
}

// Of two heads of six dimensions the first four turn, as pairs of halves.
TEST(OpsRope, TurnsPairsByTheirPositionAndGradientsBack) {
  kernel::ThreadPool pool(2);
  const Rope rope({.theta = 100.0}, 4);
  const auto rows =
      std::make_shared<const forward::Rows>(batch_of_lengths(), rope, /*share=*/false);
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(5);
  const at::Tensor x = copied_leaf(at::randn({rows->count(), 12}, random));
  const at::Tensor share = at::randn({rows->count(), 12}, random);
  const at::Tensor y = ops::rope({pool, {}}, rows, x, /*heads=*/2);
  (y * share).sum().backward();
  constexpr std::int64_t row = 5 + 37;  // of the second sequence
  for (const std::int64_t first : {0, 6}) {
    for (const std::int64_t pair : {0, 1}) {
      const double angle = 37 * std::pow(100.0, -static_cast<double>(pair) / 2);
      const auto number = [&](const at::Tensor& t, std::int64_t half) {
        return t[row][first + pair + half].item<double>();
      };
      const double c = std::cos(angle), s = std::sin(angle);
      EXPECT_NEAR(number(y, 0), number(x, 0) * c - number(x, 2) * s, 1e-4);
      EXPECT_NEAR(number(y, 2), number(x, 2) * c + number(x, 0) * s, 1e-4);
      EXPECT_NEAR(number(x.grad(), 0), number(share, 0) * c + number(share, 2) * s, 1e-4);
      EXPECT_NEAR(number(x.grad(), 2), number(share, 2) * c - number(share, 0) * s, 1e-4);
    }
    for (const std::int64_t still : {4, 5})
      EXPECT_TRUE(y[row][first + still].equal(x[row][first + still]));
  }
}

TEST(OpsRope, SomeRowsTurnAsTheyDoAmongAll) {
  kernel::ThreadPool pool(1);
  const PassContext pass{pool, {}};
  const Rope rope({}, 4);
  const auto rows =
      std::make_shared<const forward::Rows>(batch_of_lengths(), rope, /*share=*/false);
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(5);
  const at::Tensor x = at::randn({rows->count(), 4}, random);
  const at::Tensor share = at::randn({rows->count(), 4}, random);
  const at::Tensor all = copied_leaf(x), some = copied_leaf(x.narrow(0, 100, 50));
  const at::Tensor y = ops::rope(pass, rows, all, 1);
  const at::Tensor of_some = ops::rope(pass, rows, some, 1, /*first=*/100);
  EXPECT_TRUE(of_some.equal(y.narrow(0, 100, 50)));
  (y * share).sum().backward();
  (of_some * share.narrow(0, 100, 50)).sum().backward();
  EXPECT_TRUE(some.grad().equal(all.grad().narrow(0, 100, 50)));
}

}  // namespace
}  // namespace rl
