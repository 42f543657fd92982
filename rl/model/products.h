// Matrix products of backward passes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "rl/model/parallel.h"

namespace rl {

/// into = a b, or into += a b. Of fp32 on the CPU by kernel::multiply, on the calling thread: parts
/// of a product have the bits of the whole, on every processor. Of bf16 factors the product is
/// rounded before it is added. `into` has dense rows; a and b may have any strides.
void multiply_into(const at::Tensor& into, const at::Tensor& a, const at::Tensor& b,
                   bool adds = false);

/// into = the sum of the rows of `rows`, or into += it. As multiply_into().
void sum_rows_into(const at::Tensor& into, const at::Tensor& rows, bool adds = false);

/// Some rows and columns of a product.
struct ProductPart {
  Block rows;
  Block columns;
};

/// Parts of a product of factors like `factor`, one task each. Every part packs its rows of the one
/// factor and its columns of the other. Of fp32 on the CPU there are as few parts as `threads` have
/// use for, and they are nearly square. Elsewhere they are rows, cut as cut() does, whatever the
/// threads.
std::vector<ProductPart> product_parts(const at::Tensor& factor, std::int64_t rows,
                                       std::int64_t columns, std::int64_t threads,
                                       std::int64_t rows_least);

/// into[part] = a b, or += it.
void multiply_part_into(const at::Tensor& into, const ProductPart& part, const at::Tensor& a,
                        const at::Tensor& b, bool adds = false);

/// a b.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

}  // namespace rl
