// StageStream: the messages between the stages of a pipeline with several passes in flight.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "rl/comm/pipeline_links.h"
#include "rl/model/tied_table_sum.h"

namespace rl {

/// 1F1B (Narayanan et al. 2019, "PipeDream", 2021, arXiv:2104.04473): a stage hands rows on and
/// begins the next pass. Each stage makes its forward passes in one order, and its backward passes
/// in the same order. How it interleaves the two is its own affair. One thread at a time. Borrows
/// the links, whose errors end the pass as a StatusException.
class StageStream {
 public:
  explicit StageStream(const PipelineLinks& links) : links_(links) {}

  int stage() const { return links_.stages->rank(); }
  int stages() const { return links_.stages->size(); }
  bool is_first() const { return stage() == 0; }
  bool is_last() const { return stage() + 1 == stages(); }

  /// What the stage before this one gives for the next pass, [rows, width]; with a graph if
  /// `trains`, whose way back sends the gradient there.
  at::Tensor taken(std::int64_t rows, std::int64_t width, bool trains) const;
  /// Sends this stage's output to the next one.
  void give(const at::Tensor& output) const;
  /// The gradient of an output of that shape; undefined: nothing is learned from the pass.
  at::Tensor taken_back(const at::Tensor& output) const;
  /// Sends on that nothing is learned from the pass; with `tied` also of the embeddings.
  void give_back_nothing(bool tied) const;

  /// On the first stage: the embeddings, whose gradient is the last stage's to add.
  at::Tensor giving_gradient_to_last(const at::Tensor& embeddings) const;
  /// On the last one: the gradient of the oldest pass whose one is missing; undefined: none.
  at::Tensor gradient_of_first(std::int64_t rows, std::int64_t width) const;
  /// On the last one: what waits for such gradients.
  TiedTableSum& tied_table() { return tied_table_; }

  const PipelineLinks& links() const { return links_; }

  /// Lets messages on while this stage computes.
  void progress() const;

 private:
  const PipelineLinks& links_;
  TiedTableSum tied_table_;
};

}  // namespace rl
