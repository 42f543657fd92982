#include "rl/model/tied_table_sum.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace rl {
namespace {

constexpr std::int64_t kTableRows = 20;
constexpr std::int64_t kTokens = 7;
constexpr std::int64_t kWidth = 3;

// What passes give to a table: by the output layer in one or two parts, and by the embeddings.
struct PassOfTable {
  std::vector<at::Tensor> d_logits, x;
  std::vector<std::int64_t> rows;  // looked up, each once
  at::Tensor dy;                   // of these rows

  explicit PassOfTable(std::mt19937& random) {
    const int parts = std::uniform_int_distribution<int>(1, 2)(random);
    for (int part = 0; part < parts; ++part) {
      d_logits.push_back(at::randn({kTokens, kTableRows}));
      x.push_back(at::randn({kTokens, kWidth}));
    }
    for (std::int64_t row = 0; row < kTableRows; ++row)
      if (std::uniform_int_distribution<int>(0, 3)(random) == 0) rows.push_back(row);
    dy = at::randn({static_cast<std::int64_t>(rows.size()), kWidth});
  }

  void add_embeddings(const at::Tensor& into) const {
    for (std::size_t i = 0; i < rows.size(); ++i)
      into.select(0, rows[i]).add_(dy.select(0, static_cast<std::int64_t>(i)));
  }
};

// A row's sum, token by token, as it would be without the others.
void multiply(const at::Tensor& into, const at::Tensor& d_logits, const at::Tensor& x, bool adds) {
  if (!adds) into.zero_();
  for (std::int64_t row = 0; row < into.size(0); ++row)
    for (std::int64_t token = 0; token < x.size(0); ++token)
      into.select(0, row).add_(x.select(0, token) * d_logits[token][row].item<float>());
}

TEST(TiedTableSum, HasTheBitsOfPassesOneAfterTheOther) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<PassOfTable> passes;
    for (int pass = 0; pass < 6; ++pass) passes.emplace_back(random);
    at::Tensor expected = at::zeros({kTableRows, kWidth}),
               gradient = at::zeros({kTableRows, kWidth});
    for (const PassOfTable& pass : passes) {
      for (std::size_t part = 0; part < pass.x.size(); ++part)
        multiply(expected, pass.d_logits[part], pass.x[part], /*adds=*/true);
      pass.add_embeddings(expected);
    }
    TiedTableSum sum;
    std::size_t settled = 0;
    const auto settle = [&] {
      sum.settle(gradient, [&] { passes[settled++].add_embeddings(gradient); });
    };
    for (const PassOfTable& pass : passes) {
      for (std::size_t part = 0; part < pass.x.size(); ++part)
        sum.add_product(gradient, pass.d_logits[part], pass.x[part], /*adds=*/true, multiply);
      sum.wait_for(pass.rows);
      const auto most = std::uniform_int_distribution<std::size_t>(0, 3)(random);
      while (sum.waiting() > most) settle();
    }
    while (sum.waiting() > 0) settle();
    EXPECT_EQ(settled, passes.size());
    EXPECT_TRUE(at::equal(gradient, expected)) << "seed " << seed;
  }
}

// Of a pass that gives gradients to the embeddings alone.
TEST(TiedTableSum, EmbeddingsMayBeginTheSum) {
  std::mt19937 random(3);
  const PassOfTable first(random), second(random);
  at::Tensor expected = at::zeros({kTableRows, kWidth});
  first.add_embeddings(expected);
  multiply(expected, second.d_logits[0], second.x[0], /*adds=*/true);
  at::Tensor gradient = at::randn({kTableRows, kWidth});
  TiedTableSum sum;
  sum.wait_for(first.rows);
  sum.add_product(gradient, second.d_logits[0], second.x[0], /*adds=*/false, multiply);
  sum.settle(gradient, [&] { first.add_embeddings(gradient); });
  EXPECT_TRUE(at::equal(gradient, expected));
}

TEST(TiedTableSum, WritesOverWhatWasThereWhereNothingWaits) {
  at::Tensor gradient = at::randn({2, kWidth});
  const at::Tensor d_logits = at::randn({kTokens, 2}), x = at::randn({kTokens, kWidth});
  at::Tensor expected = at::zeros({2, kWidth});
  multiply(expected, d_logits, x, /*adds=*/true);
  TiedTableSum sum;
  sum.add_product(gradient, d_logits, x, /*adds=*/false, multiply);
  EXPECT_TRUE(at::equal(gradient, expected));
}

}  // namespace
}  // namespace rl
