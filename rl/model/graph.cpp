#include "rl/model/graph.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rl/model/autograd.h"
#include "rl/model/bound_weights.h"
#include "rl/model/dropout.h"
#include "rl/model/family.h"
#include "rl/model/head.h"
#include "rl/model/layer_pass.h"
#include "rl/model/lora.h"
#include "rl/model/model_plan.h"
#include "rl/model/ops.h"
#include "rl/model/pass_team.h"
#include "rl/model/pipeline.h"
#include "rl/model/projector.h"
#include "rl/model/row_sums.h"
#include "rl/model/stage_stream.h"
#include "rl/model/trained_logits.h"

namespace rl {

using bound::exists;

struct Graph::Weights {
  bound::Weight embedding, positions;
  std::shared_ptr<const ColumnCut> vocabulary;  // how a team's ranks have the embedding
  bound::Projection project_in, project_out;
  std::vector<bound::Layer> layers;
  bound::Norm last_norm;
  bound::Linear lm_head;  // the embedding when tied: both uses add to one gradient
  std::vector<std::vector<std::pair<std::string, bound::Weight>>> heads;
  bool trained = false;
  bool base_trained = false;           // the model's own weights are
  DropoutPasses* passes = nullptr;     // of an adapter that drops
  std::optional<DropoutPass> dropout;  // of the pass that began last
};

Graph::Graph(const ModelConfig& config, const Parameters& values, GradientArena* gradients,
             kernel::ThreadPool& pool, std::optional<BoundAdapter> adapter, const PassTeam* team)
    : config_(config), pool_(pool) {
  team_ = team != nullptr ? team->of_stage() : nullptr;
  if (team != nullptr && team->stages() > 1)
    pipeline_ = std::make_unique<const Pipeline>(
        *team, StageCuts(config, values.specs(), team->stages(), team->chunks()));
  if (pipeline_ && team->links() != nullptr)
    stream_ = std::make_unique<StageStream>(*team->links(), team->chunks());
  const ModelPlan plan = plan_of(config);
  const WeightBinder bind(
      config, plan, values, gradients, adapter, team_,
      pipeline_ ? &pipeline_->cuts().differentiated(pipeline_->stage()) : nullptr);
  weights_ = std::make_unique<Weights>();
  std::tie(weights_->embedding, weights_->vocabulary) = bind.vocabulary(plan.embedding);
  weights_->positions = bind.weight(plan.positions);
  weights_->project_in = bind.projection({plan.project_in});
  weights_->project_out = bind.projection({plan.project_out});
  for (const LayerPlan& layer : plan.layers) weights_->layers.push_back(bind.layer(layer));
  weights_->last_norm = bind.norm(plan.last_norm);
  weights_->lm_head = bind.linear(plan.lm_head);
  for (const HeadPlan& head : plan.heads) {
    auto& list = weights_->heads.emplace_back();
    for (ParameterIndex i = head.first; i < head.first + head.count; ++i)
      list.emplace_back(plan.parameters[static_cast<std::size_t>(i)].name, bind.weight(i));
  }
  weights_->base_trained = gradients != nullptr;
  weights_->trained = gradients != nullptr || (adapter && adapter->gradients != nullptr);
  if (adapter && adapter->gradients != nullptr && adapter->lora.config().dropout > 0)
    weights_->passes = adapter->passes;
}

Graph::~Graph() = default;

// Of every stage of a pipeline: what a pass drops is the same wherever its layers are.
void Graph::begin_dropout() const {
  weights_->dropout.reset();
  if (weights_->passes != nullptr && c10::GradMode::is_enabled())
    weights_->dropout = weights_->passes->take();
}

// The first layer's input. `streams`: whether several passes are in flight.
at::Tensor Graph::embedded(const forward::RowsPtr& rows, const PassContext& pass,
                           const std::shared_ptr<const ColumnCut>& own, bool streams) const {
  at::Tensor x = ops::embedding(pass, weights_->embedding, rows->ids, weights_->trained,
                                {.cut = weights_->vocabulary, .rows = own});
  if (has_tied_stages())
    x = streams ? stream_->giving_gradient_to_last(x) : pipeline_->giving_gradient_to_last(x);
  if (config_.embedding_scale != 1.0) x = x * static_cast<float>(config_.embedding_scale);
  if (exists(weights_->project_in))
    x = Projector(pass, weights_->dropout, own).one(x, weights_->project_in);
  if (!weights_->positions.value.defined()) return x;
  std::vector<std::int32_t> at = rows->positions;
  for (std::int32_t& position : at) position += static_cast<std::int32_t>(config_.position_offset);
  return ops::add(pass, x,
                  ops::embedding(pass, weights_->positions, at, weights_->trained, {.rows = own}));
}

at::Tensor Graph::hidden_states(const forward::RowsPtr& rows, const Attend& attend,
                                const PassOptions& options) const {
  const PassContext pass = context(options);
  before_forward(-1);
  begin_dropout();
  const std::shared_ptr<const ColumnCut> own = own_rows(team_, *rows);
  at::Tensor x;
  if (!pipeline_ || pipeline_->is_first()) x = embedded(rows, pass, own, /*streams=*/false);
  const LayerPass layers(config_, pass, weights_->dropout, rows, attend);
  for (std::size_t i = 0; i < weights_->layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    x = reached(layer, rows, pass, own, x);
    if (!pipeline_ || pipeline_->has(layer))
      x = through_layer(i, layers, rows, attend, pass, x);
    else
      before_forward(layer);
  }
  return own && makes_outputs() ? ops::all_rows(pass, x, *own) : x;
}

at::Tensor Graph::through_layer(std::size_t index, const LayerPass& layers,
                                const forward::RowsPtr& rows, const Attend& attend,
                                const PassContext& pass, const at::Tensor& x) const {
  const auto layer = static_cast<std::int64_t>(index);
  before_forward(layer);
  const bool recompute = pass.options.recompute_layers && autograd::needed({x});
  at::Tensor y = recompute ? recomputed_layer(index, rows, attend, pass, x)
                           : layers.layer(layer, weights_->layers[index], x);
  if (listeners_.empty()) return y;
  return autograd::before_backward(y, [told = before_backward(), layer] { told(layer); });
}

at::Tensor Graph::chunk_states(int chunk, const forward::RowsPtr& rows, const Attend& attend,
                               const PassOptions& options) const {
  const PassContext pass = context(options);
  begin_dropout();
  at::Tensor x;
  if (chunk == 0) {
    before_forward(-1);
    x = embedded(rows, pass, nullptr, /*streams=*/true);
  } else {
    x = stream_->taken(chunk, rows->count(), config_.hidden_size, weights_->trained);
  }
  const LayerPass layers(config_, pass, weights_->dropout, rows, attend);
  const ColumnCut& chunks = pipeline_->cuts().layers();
  const auto first = static_cast<std::size_t>(chunks.first(chunk));
  for (std::size_t i = first; i < first + static_cast<std::size_t>(chunks.size(chunk)); ++i) {
    x = through_layer(i, layers, rows, attend, pass, x);
    stream_->progress();
  }
  if (!stream_->ends_with(chunk)) stream_->give(chunk, x);
  return x;
}

bool Graph::has_tied_stages() const {
  return pipeline_ && pipeline_->cuts().is_tied() && weights_->base_trained;
}

void Graph::wait_for_embeddings(const forward::Rows& rows, bool learns) const {
  std::vector<std::int64_t> looked_up;
  if (learns) looked_up = RowSums({rows.ids.begin(), rows.ids.end()}).destinations();
  stream_->tied_table().wait_for(std::move(looked_up));
}

void Graph::settle_embeddings(const forward::Rows& rows) const {
  const bound::Weight& table = weights_->embedding;
  const at::Tensor dy = stream_->gradient_of_first(rows.count(), table.value.size(1));
  stream_->tied_table().settle(table.grad, [&] {
    if (dy.defined()) ops::add_embedding_gradient(context({}), table, rows.ids, dy, {});
  });
}

// Where a chunk of a pipeline begins, rows go from the stage before it to its own.
at::Tensor Graph::reached(std::int64_t layer, const forward::RowsPtr& rows, const PassContext& pass,
                          const std::shared_ptr<const ColumnCut>& own, const at::Tensor& x) const {
  if (!pipeline_) return x;
  const std::int64_t count = own ? own->size(team_->rank()) : rows->count();
  // The gradient of a tied table is the output layer's to add.
  const auto behind = [this, rows, pass, own, count] {
    if (!has_tied_stages()) return;
    const at::Tensor dy = pipeline_->gradient_of_first(count, weights_->embedding.value.size(1));
    if (!pipeline_->is_last()) return;
    ops::add_embedding_gradient(pass, weights_->embedding, rows->ids, dy,
                                {.cut = weights_->vocabulary, .rows = own});
  };
  return pipeline_->at_layer(layer, x, count, config_.hidden_size, weights_->trained,
                             before_backward(), behind);
}

bool Graph::makes_outputs() const { return !pipeline_ || pipeline_->is_last(); }

std::vector<at::Tensor> Graph::outputs(const at::Tensor& hidden,
                                       std::vector<at::Tensor> made) const {
  if (!pipeline_) return made;
  if (!pipeline_->is_last()) before_forward(static_cast<std::int64_t>(weights_->layers.size()));
  return pipeline_->outputs(hidden, std::move(made), before_backward());
}

std::function<void(std::int64_t layer)> Graph::before_backward() const {
  return [listeners = listeners_, stream = stream_.get()](std::int64_t layer) {
    for (LayerListener* listener : listeners) listener->before_backward(layer);
    if (stream != nullptr) stream->progress();
  };
}

void Graph::before_forward(std::int64_t layer) const {
  for (LayerListener* listener : listeners_) listener->before_forward(layer);
}

at::Tensor Graph::recomputed_layer(std::size_t index, const forward::RowsPtr& rows,
                                   const Attend& attend, const PassContext& pass,
                                   const at::Tensor& x) const {
  // What was dropped is dropped again, also while the graph is left out.
  const auto layer = [this, index, rows, attend, pass,
                      dropout = weights_->dropout](const at::Tensor& in) {
    return LayerPass(config_, pass, dropout, rows, attend)
        .layer(static_cast<std::int64_t>(index), weights_->layers[index], in);
  };
  return autograd::recomputed(x, layer);
}

at::Tensor Graph::last_norm(const at::Tensor& hidden, const PassOptions& options) const {
  const PassContext pass = context(options);
  before_forward(static_cast<std::int64_t>(weights_->layers.size()));
  const at::Tensor x =
      exists(weights_->last_norm) ? ops::norm(pass, hidden, weights_->last_norm) : hidden;
  return exists(weights_->project_out)
             ? Projector(pass, weights_->dropout, nullptr).one(x, weights_->project_out)
             : x;
}

at::Tensor Graph::head(std::size_t index, const at::Tensor& normed,
                       const PassOptions& options) const {
  const HeadConfig& config = config_.output_heads[index];
  return find_head_kind(config.kind)
      ->compute(HeadInputs(config, normed, weights_->heads[index], context(options)));
}

at::Tensor Graph::of_logits(const at::Tensor& normed, const OfLogits& numbers,
                            const PassOptions& options) const {
  return numbers_of_logits(context(options), normed, {weights_->lm_head, config_.logit_softcap},
                           numbers);
}

at::Tensor Graph::trained_logits(const at::Tensor& normed, const PassOptions& options) const {
  return rl::trained_logits(context(options), normed, {weights_->lm_head, config_.logit_softcap});
}

at::Tensor Graph::logits(const at::Tensor& normed, const PassOptions& options) const {
  const PassContext pass = context(options);
  c10::AutoGradMode off(false);
  at::Tensor logits = ops::linear(pass, normed, weights_->lm_head);
  forward::softcap_(pass, logits, static_cast<float>(config_.logit_softcap));
  return logits;
}

ops::LmHeadOutputs Graph::logprobs(const at::Tensor& normed, std::span<const std::int32_t> targets,
                                   ops::LmHeadOptions wanted, const PassOptions& options) const {
  wanted.softcap = static_cast<float>(config_.logit_softcap);
  if (stream_ && has_tied_stages()) wanted.tied_table = &stream_->tied_table();
  return ops::lm_head_logprobs(context(options), normed, weights_->lm_head, targets, wanted);
}

}  // namespace rl
