#include "rl/model/tied_table_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/core/check.h"

namespace rl {
namespace {

at::Tensor index_of(const std::vector<std::int64_t>& rows) {
  return at::tensor(rows, at::TensorOptions().dtype(at::kLong));
}

}  // namespace

void TiedTableSum::add_product(const at::Tensor& table_gradient, const at::Tensor& d_logits,
                               const at::Tensor& x, bool adds, const Multiply& multiply) {
  std::vector<std::int64_t> rows;
  for (const std::vector<std::int64_t>& of_pass : waiting_) {
    std::vector<std::int64_t> all;
    std::ranges::set_union(rows, of_pass, std::back_inserter(all));
    rows = std::move(all);
  }
  if (rows.empty()) return multiply(table_gradient, d_logits, x, adds);
  at::Tensor whole = table_gradient;
  if (!adds) whole.zero_();  // the embeddings that are waited for begin the sum
  const at::Tensor index = index_of(rows);
  const at::Tensor before = table_gradient.index_select(0, index);
  multiply(table_gradient, d_logits, x, /*adds=*/true);
  whole.index_copy_(0, index, before);
  products_.push_back({pass_, std::move(rows), d_logits.index_select(1, index), x, multiply});
}

void TiedTableSum::wait_for(std::vector<std::int64_t> rows) {
  waiting_.push_back(std::move(rows));
  ++pass_;
}

// Whether a pass before that one waits for the row.
bool TiedTableSum::waits(std::int64_t row, std::int64_t before_pass) const {
  const std::int64_t oldest = pass_ - std::ssize(waiting_);
  for (std::int64_t pass = oldest; pass < before_pass; ++pass)
    if (std::ranges::binary_search(waiting_[static_cast<std::size_t>(pass - oldest)], row))
      return true;
  return false;
}

// Of those rows that nothing is waited for any more.
void TiedTableSum::multiply_now(const at::Tensor& table_gradient, Product& product) const {
  std::vector<std::int64_t> now, later, now_columns, later_columns;
  for (std::size_t i = 0; i < product.rows.size(); ++i) {
    const bool stays = waits(product.rows[i], product.pass);
    (stays ? later : now).push_back(product.rows[i]);
    (stays ? later_columns : now_columns).push_back(static_cast<std::int64_t>(i));
  }
  if (now.empty()) return;
  const at::Tensor index = index_of(now);
  const at::Tensor rows = table_gradient.index_select(0, index);
  product.multiply(rows, product.d_logits.index_select(1, index_of(now_columns)), product.x,
                   /*adds=*/true);
  at::Tensor whole = table_gradient;
  whole.index_copy_(0, index, rows);
  if (!later.empty()) product.d_logits = product.d_logits.index_select(1, index_of(later_columns));
  product.rows = std::move(later);
}

void TiedTableSum::settle(const at::Tensor& table_gradient, const std::function<void()>& add) {
  CHECK(!waiting_.empty());
  const at::NoGradGuard no_graph;
  add();
  waiting_.pop_front();
  for (Product& product : products_) multiply_now(table_gradient, product);
  std::erase_if(products_, [](const Product& product) { return product.rows.empty(); });
  if (waiting_.empty()) pass_ = 0;
}

}  // namespace rl
