// TiedTableSum: the gradient of a table that is output layer and embeddings, whose two halves come
// at different times.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace rl {

/// A pipeline may have several passes in flight. Its last stage then goes on to the next pass
/// before the first one has sent the gradients of the embeddings. A rank alone adds what the output
/// layer gives, then what the embeddings give, pass by pass. To have its bits, the rows that a pass
/// has looked up wait. What later output layers give for them is added when the pass's embeddings
/// are. Memory: for each pass that is waited for, [T, rows that wait] and [T, I] of the passes
/// after it. A resource; one thread at a time.
class TiedTableSum {
 public:
  /// into [R, I] += (or = without `adds`) d_logits [T, R] transposed times x [T, I]; a row's bits
  /// do not depend on the other rows.
  using Multiply = std::function<void(const at::Tensor& into, const at::Tensor& d_logits,
                                      const at::Tensor& x, bool adds)>;

  /// What the output layer of the present pass gives, for the whole table.
  void add_product(const at::Tensor& table_gradient, const at::Tensor& d_logits,
                   const at::Tensor& x, bool adds, const Multiply& multiply);

  /// The backward pass has ended whose embeddings looked up these rows, each once, ascending: they
  /// wait from now on.
  void wait_for(std::vector<std::int64_t> rows);

  /// The number of passes that are waited for.
  std::size_t waiting() const { return waiting_.size(); }

  /// Calls `add`, which adds the gradients of the embeddings of the oldest of them, and then what
  /// its rows have waited with.
  void settle(const at::Tensor& table_gradient, const std::function<void()>& add);

 private:
  struct Product {
    std::int64_t pass = 0;
    std::vector<std::int64_t> rows;  // of the table
    at::Tensor d_logits;             // [T, rows]
    at::Tensor x;
    Multiply multiply;
  };

  bool waits(std::int64_t row, std::int64_t before_pass) const;
  void multiply_now(const at::Tensor& table_gradient, Product& product) const;

  std::int64_t pass_ = 0;                          // whose products are being added
  std::deque<std::vector<std::int64_t>> waiting_;  // rows, by pass, up to the one before pass_
  std::deque<Product> products_;                   // in their order
};

}  // namespace rl
