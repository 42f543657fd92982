// Attention of a whole pass on a device: all sequences and heads in a few batched products. Each
// launch costs as much as the arithmetic of a short sequence. Same bits in every run. By ATen
// alone, so that it computes wherever ATen does.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rl/model/attention_plan.h"
#include "rl/model/attention_shape.h"
#include "rl/model/row_layout.h"

namespace rl::forward {

/// Which queries see which keys is kept for all layers up to this many bytes, one for each pair.
inline constexpr std::int64_t kHiddenBytesMax = 64 << 20;

/// What attention takes: q [T, H * D], k and v [T, K * D], of rows.
struct AttentionInputs {
  at::Tensor q, k, v;
};

/// Gradients: dq has q's rows, dk and dv have one row for each token of the batch.
struct AttentionGradients {
  at::Tensor dq, dk, dv;
};

/// How the sequences of some rows are gathered into padded batches: tables that all layers of one
/// shape share. Copied to the device once, in one piece.
class PaddedAttention {
 public:
  /// `rows` is read here alone.
  PaddedAttention(const RowLayout& rows, const AttentionShape& shape, at::Device device,
                  const AttentionLimits& limits = {});
  PaddedAttention(const PaddedAttention&) = delete;
  PaddedAttention& operator=(const PaddedAttention&) = delete;

  bool serves(const AttentionShape& shape, at::Device device) const {
    return shape == shape_ && device == tables_.device();
  }
  std::size_t batches() const { return batches_.size(); }

  /// Memory: twice the scores of a batch (see AttentionLimits).
  Attended forward(const AttentionInputs& in) const;

  /// Computes probabilities again from the log-normalizers. Memory: twice the scores of a batch,
  /// three times with a soft cap.
  AttentionGradients backward(const AttentionInputs& in, const Attended& out,
                              const at::Tensor& dy) const;

 private:
  struct Range {  // of the tables
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  // Rows and tokens are counted by key head below: row r of head h is r * kv_heads + h. So are
  // slots, the places in what is padded.
  struct Batch {
    std::int64_t pieces = 0, queries = 0, keys = 0;
    std::int64_t first_query_slot = 0;
    Range row_of_query_slot = {}, row_of_key_slot = {};
    Range last_key = {};  // [pieces, queries] that each query sees, as its piece counts; or -1
    Range tokens = {}, slot_of_token = {};  // of the keys, without the padding
    at::Tensor hidden = {};                 // unless all together are too large to keep
  };

  class Builder;

  at::Tensor table(const Range& range) const { return tables_.narrow(0, range.first, range.count); }
  at::Tensor hidden(const Batch& batch) const;
  at::Tensor queries_of(const Batch& batch, const at::Tensor& t) const;
  at::Tensor keys_of(const Batch& batch, const at::Tensor& t) const;
  at::Tensor scores(const at::Tensor& q, const at::Tensor& k) const;
  void hide(const Batch& batch, const at::Tensor& t, float value) const;
  at::Tensor slots(const Batch& batch, const at::Tensor& t) const;
  at::Tensor of_rows(const at::Tensor& padded) const;

  AttentionShape shape_;
  std::int64_t group_ = 0;   // query heads of a key head
  std::int64_t rows_ = 0;    // by key head
  std::int64_t tokens_ = 0;  // by key head
  std::int64_t query_slots_ = 0;
  Range slot_of_row_;
  std::vector<Batch> batches_;
  at::Tensor tables_;
};

}  // namespace rl::forward
