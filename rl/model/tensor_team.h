// TensorTeam: ranks that make a pass together, each of which computes a part of the outputs of
// every product (tensor parallelism).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/mesh/column_cut.h"

namespace rl {

/// Only outputs are cut, never what is summed over, so that every number has the bits of one rank
/// (docs/adr/0050). All ranks make the same calls in the same order. On the CPU. Borrows the
/// communicator, whose errors end the pass as a StatusException.
class TensorTeam {
 public:
  explicit TensorTeam(Communicator& communicator) : communicator_(communicator) {}

  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  Communicator& communicator() const { return communicator_; }

  /// Of tensors [R, own columns], fp32 or bf16, with one cut each: all columns, on every rank.
  std::vector<at::Tensor> all_columns(std::span<const at::Tensor> own,
                                      std::span<const ColumnCut> cuts, std::string_view what) const;
  at::Tensor all_columns(const at::Tensor& own, const ColumnCut& cut, std::string_view what) const;

  /// This rank's columns of a tensor that has all, dense.
  at::Tensor own_columns(const at::Tensor& all, const ColumnCut& cut) const;

  /// Of a matrix of which each rank has the rows of `rows`: all rows of the rank's columns, dense.
  at::Tensor columns_of_rows(const at::Tensor& own_rows, const ColumnCut& rows,
                             const ColumnCut& columns, std::string_view what) const;

  /// Of a matrix [N, H] whose rows lie on different ranks, all rows: row i is on rank owner[i], and
  /// `own` has this rank's ones in their order.
  at::Tensor all_rows(const at::Tensor& own, std::span<const int> owner,
                      std::string_view what) const;

  /// What that rank has; the others' are ignored.
  std::vector<std::byte> from(int rank, std::span<const std::byte> mine,
                              std::string_view what) const;

 private:
  Communicator& communicator_;
};

}  // namespace rl
