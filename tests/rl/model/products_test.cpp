// Products cut into tasks: every element once, and the same bits by any number of threads.
#include "rl/model/products.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(Products, PartsAreTheWholeOnce) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor factor = at::ones({1, 1}, type);
    for (const std::int64_t rows : {0, 1, 95, 96, 700, 2048}) {
      for (const std::int64_t columns : {1, 64, 576, 1536}) {
        for (const std::int64_t threads : {1, 2, 3, 8}) {
          const at::Tensor times = at::zeros({rows, columns});
          for (const ProductPart& part : product_parts(factor, rows, columns, threads, 64)) {
            times.narrow(0, part.rows.first, part.rows.count)
                .narrow(1, part.columns.first, part.columns.count)
                .add_(1);
          }
          EXPECT_TRUE(times.equal(at::ones({rows, columns})))
              << rows << " x " << columns << " on " << threads;
        }
      }
    }
  }
}

TEST(Products, OneThreadHasOnePart) {
  EXPECT_EQ(product_parts(at::ones({1, 1}), 2048, 1536, 1, 64).size(), 1u);
  EXPECT_EQ(product_parts(at::ones({1, 1}), 2048, 1536, 2, 64).size(), 4u);
}

// Rounded products of parts need not have the bits of the whole.
TEST(Products, OfRoundedFactorsAreCutWhateverTheThreads) {
  const at::Tensor factor = at::ones({1, 1}, at::kBFloat16);
  EXPECT_EQ(product_parts(factor, 700, 1536, 1, 64).size(),
            product_parts(factor, 700, 1536, 8, 64).size());
}

TEST(Products, HaveTheSameBitsInAnyParts) {
  const at::Tensor a = at::randn({333, 290}), b = at::randn({290, 415});
  const at::Tensor begun = at::randn({333, 415});
  for (const bool adds : {false, true}) {
    at::Tensor whole = begun.clone();
    multiply_into(whole, a, b, adds);
    for (const std::int64_t threads : {2, 3, 8}) {
      const at::Tensor into = begun.clone();
      for (const ProductPart& part : product_parts(a, 333, 415, threads, 64))
        multiply_part_into(into, part, a, b, adds);
      EXPECT_TRUE(into.equal(whole)) << threads;
    }
  }
}

}  // namespace
}  // namespace rl
