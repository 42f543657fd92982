// Attention of whole batches on a device, against the kernels and strips of the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <random>
#include <string>

#include "rl/model/ops.h"
#include "rl/model/padded_attention.h"
#include "rl/model/rope.h"
#include "stand_in.h"

namespace rl {
namespace {

using AttentionDevice = testing::DeviceTest;
using forward::AttentionGradients;
using forward::AttentionInputs;
using forward::AttentionLimits;
using forward::AttentionShape;
using forward::PaddedAttention;

struct Case {
  std::string name;
  std::vector<std::int64_t> lengths = {};
  std::int64_t beginning = 0;  // that each sequence has as the one before it
  AttentionShape shape = {};
};

std::vector<Case> cases() {
  const auto shape = [](std::int64_t heads, std::int64_t kv_heads, std::int64_t dim,
                        std::int64_t window = 0, float softcap = 0) {
    return AttentionShape{.heads = heads,
                          .kv_heads = kv_heads,
                          .head_dim = dim,
                          .scale = 0.3F,
                          .softcap = softcap,
                          .window = window};
  };
  return {{"one token", {1}, 0, shape(2, 1, 8)},
          {"one sequence", {40}, 0, shape(4, 4, 12)},
          {"groups", {7, 1, 33, 20, 20, 2}, 0, shape(6, 2, 8)},
          {"a window", {50, 9, 31}, 0, shape(4, 2, 16, 6)},
          {"a window of one", {5, 9}, 0, shape(2, 2, 16, 1)},
          {"a cap", {17, 23, 4}, 0, shape(4, 1, 8, 0, 1.5F)},
          {"a shared beginning", {70, 75, 68, 66, 90}, 65, shape(6, 3, 8)},
          {"a beginning out of sight", {70, 75, 68, 66, 90}, 65, shape(6, 3, 8, 3)},
          {"all", {70, 75, 68, 66, 90}, 65, shape(4, 2, 20, 11, 2.0F)}};
}

forward::RowsPtr rows_of(const Case& c) {
  static const Rope rope({}, 0);
  PackedBatch batch;
  std::int32_t next = 100;
  for (const std::int64_t length : c.lengths) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < length; ++i)
      ids.push_back(i < c.beginning ? static_cast<std::int32_t>(i) : next++);
    batch.append(ids);
  }
  return std::make_shared<const forward::Rows>(batch, rope, /*share=*/true);
}

struct Found {
  at::Tensor y, dq, dk, dv;
};

struct Inputs {
  Inputs(const AttentionShape& shape, std::int64_t rows)
      : q(at::randn({rows, shape.heads * shape.head_dim})),
        k(at::randn({rows, shape.kv_heads * shape.head_dim})),
        v(at::randn({rows, shape.kv_heads * shape.head_dim})),
        dy(at::randn({rows, shape.heads * shape.head_dim})) {}

  // As a layer computes it.
  Found attended(const forward::RowsPtr& rows, const AttentionShape& shape,
                 at::Device device) const {
    static kernel::ThreadPool pool(1);
    const auto leaf = [&](const at::Tensor& t) {
      return t.to(device, t.scalar_type(), false, /*copy=*/true).set_requires_grad(true);
    };
    const at::Tensor on_q = leaf(q), on_k = leaf(k), on_v = leaf(v);
    const at::Tensor y = ops::attention({pool, {}}, rows, shape, on_q, on_k, on_v);
    y.backward(dy.to(device));
    return {y.detach().cpu(), on_q.grad().cpu(), on_k.grad().cpu(), on_v.grad().cpu()};
  }

  at::Tensor q, k, v, dy;
};

// What cancels to less than the terms that it is made of, which are of size one, has their
// rounding. Gradients of a query that sees one key are zero, and their error is that of the terms.
double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  const double terms = std::sqrt(static_cast<double>(expected.numel()));
  return (found - expected).norm().item<double>() / (expected.norm().item<double>() + terms);
}

// Libraries add in other orders than kernels of ours: about 1e-7 apart.
void expect_near(const Found& found, const Found& expected, const std::string& what) {
  for (const auto part : {&Found::y, &Found::dq, &Found::dk, &Found::dv})
    EXPECT_LT(relative_error(found.*part, expected.*part), 6e-7) << what;
}

TEST_F(AttentionDevice, OfWholeBatchesIsThatOfTheCpu) {
  const at::Device device = *find_device(testing::tested_device());
  for (const Case& c : cases()) {
    const auto rows = rows_of(c);
    ASSERT_EQ(rows->shared(), c.beginning > 0) << c.name;
    const Inputs in(c.shape, rows->count());
    expect_near(in.attended(rows, c.shape, device), in.attended(rows, c.shape, at::kCPU), c.name);
  }
}

TEST_F(AttentionDevice, OfRandomBatchesIsThatOfTheCpu) {
  const at::Device device = *find_device(testing::tested_device());
  std::mt19937 random(7);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int trial = 0; trial < 20; ++trial) {
    Case c{.name = "trial " + std::to_string(trial)};
    c.beginning = below(2) * (64 + below(20));
    for (std::int64_t n = 1 + below(6); n > 0; --n)
      c.lengths.push_back(c.beginning + 1 + below(40));
    c.shape = {.kv_heads = 1 + below(3), .head_dim = 4 * (1 + below(5)), .scale = 0.25F};
    c.shape.heads = c.shape.kv_heads * (1 + below(3));
    c.shape.window = below(2) * (1 + below(30));
    c.shape.softcap = static_cast<float>(below(2)) * 2.0F;
    const auto rows = rows_of(c);
    const Inputs in(c.shape, rows->count());
    expect_near(in.attended(rows, c.shape, device), in.attended(rows, c.shape, at::kCPU), c.name);
  }
}

// Gradients of a batch's rows, from tables cut by other limits than the default.
Found by_pieces(const Inputs& in, const forward::Rows& rows, const AttentionShape& shape,
                at::Device device, const AttentionLimits& limits, std::size_t* batches) {
  const PaddedAttention padded(rows.layout(), shape, device, limits);
  *batches = padded.batches();
  const AttentionInputs there{in.q.to(device), in.k.to(device), in.v.to(device)};
  const forward::Attended out = padded.forward(there);
  const AttentionGradients of = padded.backward(there, out, in.dy.to(device));
  return {out.y.cpu(), of.dq.cpu(), of.dk.cpu(), of.dv.cpu()};
}

TEST_F(AttentionDevice, LongSequencesAreComputedPieceByPiece) {
  const at::Device device = *find_device(testing::tested_device());
  for (const Case& c : cases()) {
    if (c.beginning > 0) continue;  // gradients of tokens are not those of rows
    const auto rows = rows_of(c);
    const Inputs in(c.shape, rows->count());
    std::size_t batches = 0;
    const AttentionLimits tight{.queries_max = 8, .score_bytes_max = 4000, .small_bytes_max = 500};
    const Found found = by_pieces(in, *rows, c.shape, device, tight, &batches);
    expect_near(found, in.attended(rows, c.shape, at::kCPU), c.name);
    if (c.lengths.size() > 1 && c.shape.window != 1) {
      EXPECT_GT(batches, 2U) << c.name;
    }
    const Found again = by_pieces(in, *rows, c.shape, device, tight, &batches);
    for (const auto part : {&Found::y, &Found::dq, &Found::dk, &Found::dv})
      EXPECT_TRUE((found.*part).equal(again.*part)) << c.name << ": not the same bits again";
  }
}

TEST_F(AttentionDevice, WhatIsNotFiniteStaysInItsSequence) {
  const at::Device device = *find_device(testing::tested_device());
  const Case c{.name = "", .lengths = {9, 4, 12}, .shape = cases()[2].shape};
  const auto rows = rows_of(c);
  Inputs in(c.shape, rows->count());
  const Found expected = in.attended(rows, c.shape, device);
  for (const at::Tensor& t : {in.q, in.k, in.v}) t.narrow(0, 9, 4).fill_(NAN);
  const Found found = in.attended(rows, c.shape, device);
  for (const auto part : {&Found::y, &Found::dq, &Found::dk, &Found::dv}) {
    EXPECT_TRUE((found.*part).narrow(0, 0, 9).equal((expected.*part).narrow(0, 0, 9)));
    EXPECT_TRUE((found.*part).narrow(0, 13, 12).equal((expected.*part).narrow(0, 13, 12)));
  }
}

TEST_F(AttentionDevice, TablesOfAShapeAreMadeOnce) {
  const Case c = cases()[2];
  const auto rows = rows_of(c);
  const at::Device device = at::randn({1}).to(*find_device(testing::tested_device())).device();
  const PaddedAttention& padded = rows->padded(c.shape, device);
  AttentionShape windowed = c.shape;
  windowed.window = 4;
  EXPECT_NE(&rows->padded(windowed, device), &padded);
  EXPECT_EQ(&rows->padded(c.shape, device), &padded);
  EXPECT_EQ(padded.batches(), 1U);
}

}  // namespace
}  // namespace rl
