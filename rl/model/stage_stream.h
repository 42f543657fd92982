// StageStream: the messages between the stages of a pipeline with several passes in flight.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "rl/comm/pipeline_links.h"
#include "rl/model/tied_table_sum.h"

namespace rl {

/// 1F1B (Narayanan et al. 2019, "PipeDream", 2021, arXiv:2104.04473): a stage hands rows on and
/// begins the next pass. A chunk makes its forward passes in one order, and its backward passes in
/// the same order. How a stage interleaves these, and those of its chunks, is its own affair. One
/// thread at a time. Borrows the links, whose errors end the pass as a StatusException.
class StageStream {
 public:
  /// `chunks`: of each stage; see StageCuts.
  explicit StageStream(const PipelineLinks& links, int chunks = 1)
      : links_(links), chunks_(chunks) {}

  int stage() const { return links_.stages->rank(); }
  int stages() const { return links_.stages->size(); }
  bool is_first() const { return stage() == 0; }
  bool is_last() const { return stage() + 1 == stages(); }

  /// Of each stage.
  int chunks() const { return chunks_; }
  /// This stage's chunk of that number among its own, as one of all chunks.
  int chunk_at(int own) const { return own * stages() + stage(); }
  bool ends_with(int chunk) const { return chunk + 1 == chunks_ * stages(); }

  /// What the chunk before this stage's `chunk` gives for its next pass, [rows, width]. With a
  /// graph if `trains`, whose way back sends the gradient there.
  at::Tensor taken(int chunk, std::int64_t rows, std::int64_t width, bool trains) const;
  /// Sends that chunk's output to the next one.
  void give(int chunk, const at::Tensor& output) const;
  /// The gradient of an output of that shape; undefined: nothing is learned from the pass.
  at::Tensor taken_back(int chunk, const at::Tensor& output) const;
  /// Sends on that nothing is learned from the pass; with `tied` also of the embeddings.
  void give_back_nothing(int chunk, bool tied) const;

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
  int stage_of(int chunk) const { return chunk % stages(); }

  const PipelineLinks& links_;
  const int chunks_;
  TiedTableSum tied_table_;
};

}  // namespace rl
