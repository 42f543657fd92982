#include "rl/model/products.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>

#include "rl/kernel/product.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

kernel::Factor factor_of(const at::Tensor& t) {
  return {t.const_data_ptr<float>(), t.stride(0), t.stride(1)};
}

bool is_exact(const at::Tensor& t) { return t.scalar_type() == at::kFloat; }

}  // namespace

void multiply_into(const at::Tensor& into, const at::Tensor& a, const at::Tensor& b, bool adds) {
  at::Tensor c = into;
  if (!is_exact(a)) {
    if (adds)
      c.add_(at::mm(a, b));
    else
      c.copy_(at::mm(a, b));
  } else if (!a.device().is_cpu()) {
    if (adds)
      c.addmm_(a, b);
    else
      at::mm_out(c, a, b);
  } else {
    CHECK(c.stride(1) == 1 || c.size(1) == 1);
    kernel::multiply({.a = factor_of(a),
                      .b = factor_of(b),
                      .rows = a.size(0),
                      .columns = b.size(1),
                      .depth = a.size(1),
                      .c = c.mutable_data_ptr<float>(),
                      .c_stride = c.stride(0),
                      .adds = adds});
  }
}

void sum_rows_into(const at::Tensor& into, const at::Tensor& rows, bool adds) {
  if (rows.device().is_cpu()) {
    const at::Tensor one = at::ones({1, 1}, rows.options());
    multiply_into(into.unsqueeze(0), one.expand({1, rows.size(0)}), rows, adds);
    return;
  }
  at::Tensor sum = into;
  if (adds)
    sum.add_(rows.sum(0));
  else
    at::sum_out(sum, rows, 0);
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor c = at::empty({a.size(0), b.size(1)}, a.options().dtype(at::kFloat));
  multiply_into(c, a, b);
  return c;
}

}  // namespace rl
