// The one definition of a transformer's pass, for every family and for all that run it: training,
// scoring, generating. What differs between those is how queries find keys (Attend) and whether
// gradients are wanted.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/model/attend.h"
#include "rl/model/bound_weights.h"
#include "rl/model/forward.h"
#include "rl/model/gradient_arena.h"
#include "rl/model/layer_listener.h"
#include "rl/model/model_config.h"
#include "rl/model/ops.h"
#include "rl/model/parameters.h"

namespace rl {

class LayerPass;
class PassTeam;
class Pipeline;
class StageStream;

/// A model's parameters bound to the parts that they play. One thread at a time; borrows everything
/// it is given.
class Graph {
 public:
  /// `gradients` has the layout of `values`, or is null for a frozen model. With a team its ranks
  /// make passes together, and each reads its own part of the values alone (pass_parts()).
  Graph(const ModelConfig& config, const Parameters& values, GradientArena* gradients,
        kernel::ThreadPool& pool, std::optional<BoundAdapter> adapter = std::nullopt,
        const PassTeam* team = nullptr);
  ~Graph();

  /// What the last layer gives for each row, [T, hidden]; of a pipeline, its own last layer. With
  /// PassOptions::recompute_layers, backward calls (a copy of) `attend` again.
  at::Tensor hidden_states(const forward::RowsPtr& rows, const Attend& attend,
                           const PassOptions& options) const;

  /// The same of a chunk of a pipeline's stage alone, whatever the other stages do meanwhile. Its
  /// input comes from the chunk before it, and its output goes to the next one. There must be a
  /// stream().
  at::Tensor chunk_states(int chunk, const forward::RowsPtr& rows, const Attend& attend,
                          const PassOptions& options) const;
  /// Of a pipeline that may have several passes in flight; else null.
  StageStream* stream() const { return stream_.get(); }
  /// Whether the last stage adds up the gradients of the first one's embeddings, which are trained.
  bool has_tied_stages() const;
  /// On that stage: a backward pass over these rows has ended, and they have not come yet; there
  /// are none unless it `learns`. Then, in the order of passes: waits for them, and adds them.
  void wait_for_embeddings(const forward::Rows& rows, bool learns) const;
  void settle_embeddings(const forward::Rows& rows) const;

  /// Whether what follows is computed here: of a pipeline on its last stage.
  bool makes_outputs() const;
  /// Of a pipeline, what its last stage made of a pass, on every stage; `hidden` is what
  /// hidden_states() gave here. Else `made`.
  std::vector<at::Tensor> outputs(const at::Tensor& hidden, std::vector<at::Tensor> made) const;

  /// They are notified of the passes from now on.
  void tell(std::vector<LayerListener*> listeners) { listeners_ = std::move(listeners); }

  /// The last norm (and projection) of rows of hidden_states(): what heads are put on.
  at::Tensor last_norm(const at::Tensor& hidden, const PassOptions& options) const;

  /// What the head at that place in ModelConfig::output_heads gives for rows of last_norm(), [N,
  /// outputs].
  at::Tensor head(std::size_t index, const at::Tensor& normed, const PassOptions& options) const;

  /// Logits of rows of last_norm(), [N, V], without a graph. For this and logprobs() there must be
  /// an output layer.
  at::Tensor logits(const at::Tensor& normed, const PassOptions& options) const;

  /// The same logits with a graph.
  at::Tensor trained_logits(const at::Tensor& normed, const PassOptions& options) const;

  /// See numbers_of_logits(), of rows of last_norm(): [N, K] on every rank that has them.
  at::Tensor of_logits(const at::Tensor& normed, const OfLogits& numbers,
                       const PassOptions& options) const;

  /// What ops::lm_head_logprobs gives for rows of last_norm(). Of what is wanted the soft cap is
  /// the model's own.
  ops::LmHeadOutputs logprobs(const at::Tensor& normed, std::span<const std::int32_t> targets,
                              ops::LmHeadOptions wanted, const PassOptions& options) const;

 private:
  struct Weights;

  PassContext context(const PassOptions& options) const { return {pool_, options, team_}; }
  void before_forward(std::int64_t layer) const;
  void begin_dropout() const;
  std::function<void(std::int64_t layer)> before_backward() const;
  at::Tensor embedded(const forward::RowsPtr& rows, const PassContext& pass,
                      const std::shared_ptr<const ColumnCut>& own, bool streams) const;
  at::Tensor through_layer(std::size_t index, const LayerPass& layers, const forward::RowsPtr& rows,
                           const Attend& attend, const PassContext& pass,
                           const at::Tensor& x) const;
  at::Tensor reached(std::int64_t layer, const forward::RowsPtr& rows, const PassContext& pass,
                     const std::shared_ptr<const ColumnCut>& own, const at::Tensor& x) const;
  at::Tensor recomputed_layer(std::size_t index, const forward::RowsPtr& rows, const Attend& attend,
                              const PassContext& pass, const at::Tensor& x) const;

  const ModelConfig& config_;
  kernel::ThreadPool& pool_;
  const PassTeam* team_;  // that shares each layer
  std::unique_ptr<const Pipeline> pipeline_;
  std::unique_ptr<StageStream> stream_;
  std::unique_ptr<Weights> weights_;
  std::vector<LayerListener*> listeners_;
};

}  // namespace rl
