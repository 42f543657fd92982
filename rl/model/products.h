// Matrix products of backward passes.
#pragma once

#include <ATen/core/Tensor.h>

namespace rl {

/// into = a b, or into += a b. Of fp32 on the CPU by kernel::multiply, on the calling thread: parts
/// of a product have the bits of the whole, on every processor. Of bf16 factors the product is
/// rounded before it is added. `into` has dense rows; a and b may have any strides.
void multiply_into(const at::Tensor& into, const at::Tensor& a, const at::Tensor& b,
                   bool adds = false);

/// into = the sum of the rows of `rows`, or into += it. As multiply_into().
void sum_rows_into(const at::Tensor& into, const at::Tensor& rows, bool adds = false);

/// a b.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

}  // namespace rl
