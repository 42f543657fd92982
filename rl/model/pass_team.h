// PassTeam: ranks that make a pass together. Each of them computes a part of the outputs of every
// product (tensor parallelism), of the rows (sequence parallelism) or of the layers (pipelines).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/pipeline_links.h"
#include "rl/mesh/column_cut.h"
#include "rl/mesh/pass_sharing.h"

namespace rl {

/// Only outputs and rows are cut, never what is summed over, so that every number has the bits of
/// one rank (docs/adr/0050, 0052). All ranks make the same calls in the same order. On the CPU.
/// Borrows the communicator, whose errors end the pass as a StatusException.
class PassTeam {
 public:
  /// Ranks that compute the same layers.
  explicit PassTeam(Communicator& communicator, PassCut cut = PassCut::kOutputs)
      : communicator_(communicator), cut_(cut) {}
  /// The ranks of a pipeline's stages, stage after stage, with as many in each; each stage has
  /// `chunks` of the layers. `of_stage`: the ranks of this rank's own stage, where there are
  /// several; else null. With `links`, which the stages of one rank may have, several passes may be
  /// in flight.
  PassTeam(Communicator& communicator, int stages, int chunks, const PassTeam* of_stage,
           const PipelineLinks* links = nullptr)
      : communicator_(communicator),
        stages_(stages),
        chunks_(chunks),
        of_stage_(of_stage),
        links_(links) {}

  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  /// What ranks that compute the same layers divide.
  PassCut cut() const { return of_stage_ != nullptr ? of_stage_->cut_ : cut_; }
  int stages() const { return stages_; }
  int chunks() const { return chunks_; }
  /// The ranks that compute the same layers as this one; null: it alone.
  const PassTeam* of_stage() const { return stages_ > 1 ? of_stage_ : this; }
  const PipelineLinks* links() const { return links_; }
  PassSharing sharing() const {
    return {.ranks = size() / stages_, .cut = cut(), .stages = stages_, .chunks = chunks_};
  }
  Communicator& communicator() const { return communicator_; }

  /// Of tensors [R, own columns], fp32 or bf16, with one cut each: all columns, on every rank.
  std::vector<at::Tensor> all_columns(std::span<const at::Tensor> own,
                                      std::span<const ColumnCut> cuts, std::string_view what) const;
  at::Tensor all_columns(const at::Tensor& own, const ColumnCut& cut, std::string_view what) const;

  /// This rank's columns of a tensor that has all, dense.
  at::Tensor own_columns(const at::Tensor& all, const ColumnCut& cut) const;
  /// This rank's rows of a tensor that has all, as a view.
  at::Tensor own_rows(const at::Tensor& all, const ColumnCut& rows) const;

  /// Of a matrix of which each rank has the rows of `rows`: all rows of the rank's columns, dense.
  at::Tensor columns_of_rows(const at::Tensor& own_rows, const ColumnCut& rows,
                             const ColumnCut& columns, std::string_view what) const;

  /// The other way round: of a matrix of which each rank has the columns of `columns`, the rank's
  /// rows with all columns, dense.
  at::Tensor rows_of_columns(const at::Tensor& own_columns, const ColumnCut& columns,
                             const ColumnCut& rows, std::string_view what) const;

  /// Of a matrix of which each rank has the rows of `rows`: all of them, on every rank.
  at::Tensor all_rows(const at::Tensor& own, const ColumnCut& rows, std::string_view what) const;

  /// All rows of a matrix [N, H] whose rows lie on different ranks. Row i is on rank owner[i], and
  /// `own` has this rank's rows in their order.
  at::Tensor all_rows(const at::Tensor& own, std::span<const int> owner,
                      std::string_view what) const;

  /// Of as many numbers of rows on every rank: how the ranks have the rows of each.
  std::vector<ColumnCut> row_cuts(std::span<const std::int64_t> own, std::string_view what) const;

  /// `rows` are in the order of the ranks that they go to, `sent` with the number for each. Returns
  /// the rows that come from each rank, in the order of ranks, `received` with the number from
  /// each.
  at::Tensor exchanged_rows(const at::Tensor& rows, std::span<const std::int64_t> sent,
                            std::span<const std::int64_t> received, std::string_view what) const;

  /// What rank `from` has, fp32 of that shape, on rank `to`; undefined on the others. `own` is that
  /// of `from` alone.
  at::Tensor handed(int from, int to, const at::Tensor& own, at::IntArrayRef shape,
                    std::string_view what) const;

  /// Returns that rank's bytes; those of the others are ignored.
  std::vector<std::byte> from(int rank, std::span<const std::byte> mine,
                              std::string_view what) const;

 private:
  Communicator& communicator_;
  PassCut cut_ = PassCut::kOutputs;
  int stages_ = 1;
  int chunks_ = 1;                      // of a stage
  const PassTeam* of_stage_ = nullptr;  // of a pipeline
  const PipelineLinks* links_ = nullptr;
};

}  // namespace rl
