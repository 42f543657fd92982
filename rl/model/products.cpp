#include "rl/model/products.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>

#include <algorithm>

#include "rl/kernel/product.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

kernel::Factor factor_of(const at::Tensor& t) {
  return {t.const_data_ptr<float>(), t.stride(0), t.stride(1)};
}

bool is_exact(const at::Tensor& t) { return t.scalar_type() == at::kFloat; }

// So that threads end at about the same time.
constexpr std::int64_t kTasksPerThread = 2;

// Cuts `total` into at most `count` blocks of whole tiles.
std::vector<Block> blocks_of(std::int64_t total, std::int64_t count) {
  constexpr std::int64_t kMultiple = 96;  // rows and columns of every processor's tile divide it
  const std::int64_t size =
      std::max<std::int64_t>(1, (total + count * kMultiple - 1) / (count * kMultiple)) * kMultiple;
  std::vector<Block> blocks;
  for (std::int64_t first = 0; first < total; first += size)
    blocks.push_back({first, std::min(size, total - first)});
  return blocks;
}

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

std::vector<ProductPart> product_parts(const at::Tensor& factor, std::int64_t rows,
                                       std::int64_t columns, std::int64_t threads,
                                       std::int64_t rows_least) {
  std::vector<ProductPart> parts;
  if (!is_exact(factor) || !factor.device().is_cpu()) {
    for (const Block& block : cut(rows, rows_least, factor.device()))
      parts.push_back({block, {0, columns}});
    return parts;
  }
  const std::int64_t tasks = threads > 1 ? kTasksPerThread * threads : 1;
  std::int64_t down = 1;  // parts of the rows; tasks / down of the columns
  const auto packed = [&](std::int64_t n) { return tasks / n * rows + n * columns; };
  for (std::int64_t n = 2; n <= tasks; ++n)
    if (tasks % n == 0 && packed(n) < packed(down)) down = n;
  for (const Block& of_rows : blocks_of(rows, down))
    for (const Block& of_columns : blocks_of(columns, tasks / down))
      parts.push_back({of_rows, of_columns});
  return parts;
}

void multiply_part_into(const at::Tensor& into, const ProductPart& part, const at::Tensor& a,
                        const at::Tensor& b, bool adds) {
  multiply_into(into.narrow(0, part.rows.first, part.rows.count)
                    .narrow(1, part.columns.first, part.columns.count),
                a.narrow(0, part.rows.first, part.rows.count),
                b.narrow(1, part.columns.first, part.columns.count), adds);
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
