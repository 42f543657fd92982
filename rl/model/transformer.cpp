#include "rl/model/transformer.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "rl/model/device.h"
#include "rl/model/forward.h"
#include "rl/model/graph.h"
#include "rl/model/guarded.h"
#include "rl/model/layer_listener.h"
#include "rl/model/ops.h"
#include "rl/model/pass_parts.h"
#include "rl/model/pass_team.h"
#include "rl/model/stage_stream.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr const char* kForward = "model forward";
constexpr const char* kNoLogits =
    "logits of a classifier: it has no output layer over the vocabulary";
constexpr const char* kNoTargets = "packed batch: no targets";

Result<Parameters> load_parameters(const ModelConfig& config, const std::filesystem::path& model,
                                   const LoadOptions& how, const TransformerOptions& options) {
  const Result<at::Device> device =
      find_device(options.device);  // before the weights are read: it may not be there
  if (!device.ok()) return device.status();
  LoadOptions part = how;
  if (options.part) part.only = options.part(config);
  Result<Parameters> parameters = Parameters::load(config, model, part);
  if (!parameters.ok() || device->is_cpu()) return parameters;
  if (part.only) return parameters->to_pages(*device, *part.only);
  return guarded<Parameters>("the weights of " + model.string(),
                             [&] { return parameters->to(*device); });
}

// What there is of every token, where there may be less rows than tokens.
at::Tensor of_tokens(const at::Tensor& hidden, const forward::Rows& rows) {
  if (!rows.shared()) return hidden;
  const std::vector<std::int64_t> taken(rows.row_of.begin(), rows.row_of.end());
  return ops::select_rows(hidden, taken);
}

Attend attend(const PassContext& pass, const forward::RowsPtr& rows) {
  return [pass, rows](std::int64_t, const forward::AttentionShape& shape, const at::Tensor& q,
                      const at::Tensor& k,
                      const at::Tensor& v) { return ops::attention(pass, rows, shape, q, k, v); };
}

}  // namespace

Transformer::Transformer(ModelConfig config, Parameters parameters,
                         const TransformerOptions& options)
    : config_(std::move(config)),
      parameters_(std::move(parameters)),
      rope_(config_.rope, config_.rotated()),
      pool_(std::make_unique<kernel::ThreadPool>(options.threads > 0 ? options.threads
                                                                     : at::get_num_threads())),
      graph_(std::make_unique<Graph>(config_, parameters_, nullptr, *pool_)) {}

Transformer::~Transformer() = default;

Result<std::unique_ptr<Transformer>> Transformer::load(const std::filesystem::path& model,
                                                       const TransformerOptions& options) {
  Result<ModelConfig> config = ModelConfig::load(model);
  if (!config.ok()) return config.status();
  Result<Parameters> parameters = load_parameters(*config, model, {}, options);
  if (!parameters.ok()) return parameters.status();
  return std::make_unique<Transformer>(std::move(*config), std::move(*parameters), options);
}

Result<std::unique_ptr<Transformer>> Transformer::load(ModelConfig config,
                                                       const std::filesystem::path& model,
                                                       std::uint64_t head_seed,
                                                       const TransformerOptions& options) {
  Result<Parameters> parameters = load_parameters(config, model, {.head_seed = head_seed}, options);
  if (!parameters.ok()) return parameters.status();
  return std::make_unique<Transformer>(std::move(config), std::move(*parameters), options);
}

void Transformer::rebuild() {
  const auto found = gradients_.find(used_);
  GradientArena* gradients = found == gradients_.end() ? nullptr : found->second.get();
  const auto graph = [&](GradientArena* trained, const PassTeam* team) {
    if (used_.empty())
      return std::make_unique<Graph>(config_, parameters_, trained, *pool_, std::nullopt, team);
    return std::make_unique<Graph>(config_, parameters_, nullptr, *pool_,
                                   BoundAdapter{adapters_.at(used_), trained, &dropout_passes_},
                                   team);
  };
  graph_ = graph(team_ == nullptr ? gradients : nullptr, nullptr);
  if (team_ != nullptr) shared_graph_ = graph(gradients, team_);
  tell_graphs();
}

Status Transformer::share_passes(const PassTeam& team) {
  if (Status status = check_pass_parts(config_, team.sharing()); !status.ok()) return status;
  team_ = &team;
  rebuild();
  return {};
}

void Transformer::tell_graphs() {
  graph_->tell(listeners_);
  if (shared_graph_) shared_graph_->tell(listeners_);
}

void Transformer::tell(LayerListener& listener) {
  listeners_.push_back(&listener);
  tell_graphs();
}

void Transformer::stop_telling(LayerListener& listener) {
  std::erase(listeners_, &listener);
  tell_graphs();
}

void Transformer::begin_pass(bool another_follows) const {
  for (LayerListener* listener : listeners_) listener->before_pass(another_follows);
}

void Transformer::end_pass() const {
  for (LayerListener* listener : listeners_) listener->after_pass();
}

Status Transformer::idle_pass(bool with_backward) const {
  const c10::AutoGradMode mode(with_backward);
  const Status forward = guarded<void>("idle pass", [&] {
    for (std::int64_t layer = -1; layer <= config_.layers; ++layer)
      for (LayerListener* listener : listeners_) listener->before_forward(layer);
  });
  if (!forward.ok()) return forward;
  if (with_backward) {
    if (const Status backward = idle_backward(); !backward.ok()) return backward;
  }
  return guarded<void>("end of an idle pass", [&] { end_pass(); });
}

Status Transformer::idle_backward() const {
  return guarded<void>("idle backward pass", [&] {
    for (std::int64_t layer = config_.layers - 1; layer >= 0; --layer)
      for (LayerListener* listener : listeners_) listener->before_backward(layer);
  });
}

void Transformer::enable_gradients(GradientMemory memory) {
  if (gradients_enabled()) return;
  open_devices_before_training();
  const at::Device device = parameters_.arena().device();
  const std::span<const ParameterSpec> trained = trained_parameters().specs();
  const std::vector<ParameterSpec> layout(trained.begin(), trained.end());
  const auto on_device = [&]() -> Parameters {
    if (memory == GradientMemory::kWhole) return Parameters::zeros(layout).to(device);
    Result<Parameters> paged = Parameters::in_pages(layout, device);
    throw_unless_ok(paged.status());
    return *std::move(paged);
  };
  gradients_.emplace(used_, std::make_unique<GradientArena>(
                                device.is_cpu() ? Parameters::zeros(layout) : on_device()));
  rebuild();
}

const Parameters& Transformer::trained_parameters() const {
  return used_.empty() ? parameters_ : adapters_.at(used_).parameters();
}

const LoraAdapter* Transformer::adapter(const std::string& name) const {
  const auto found = adapters_.find(name);
  return found == adapters_.end() ? nullptr : &found->second;
}

Status Transformer::add_adapter(const std::string& name, LoraAdapter adapter) {
  if (name.empty()) return runtime::invalid_argument("an adapter needs a name");
  const at::Device device = parameters_.arena().device();
  if (adapter.parameters().arena().device() != device) adapter = adapter.to(device);
  if (!adapters_.emplace(name, std::move(adapter)).second)
    return runtime::invalid_argument("there is an adapter called " + name + " already");
  return {};
}

Status Transformer::check_adapter(const std::string& name) const {
  if (!merged_.empty())
    return runtime::invalid_argument("adapter " + merged_ +
                                     " is merged into the weights: unmerge it first");
  if (name.empty() || adapters_.contains(name)) return {};
  std::string known;
  for (const auto& [other, adapter] : adapters_) known += (known.empty() ? "" : ", ") + other;
  return runtime::not_found("there is no adapter called " + name + " (" +
                            (known.empty() ? "none was added" : known) + ")");
}

Status Transformer::use_adapter(const std::string& name) {
  if (Status status = check_adapter(name); !status.ok()) return status;
  used_ = name;
  rebuild();
  return {};
}

Status Transformer::merge_adapter(const std::string& name) {
  if (name.empty()) return runtime::invalid_argument("which adapter is to be merged?");
  if (Status status = use_adapter(name); !status.ok()) return status;
  const LoraAdapter& adapter = adapters_.at(name);
  for (const LoraModule& module : adapter.modules())
    before_merge_.push_back(parameters_.view(module.weight).clone());
  adapter.add_to(parameters_, 1.0F);
  if (Status status = use_adapter(""); !status.ok()) return status;
  merged_ = name;
  return {};
}

Status Transformer::unmerge_adapter() {
  if (merged_.empty()) return runtime::invalid_argument("no adapter is merged into the weights");
  const LoraAdapter& adapter = adapters_.at(merged_);
  for (std::size_t i = 0; i < before_merge_.size(); ++i)
    parameters_.view(adapter.modules()[i].weight).copy_(before_merge_[i]);
  before_merge_.clear();
  return use_adapter(std::exchange(merged_, {}));
}

GradientArena& Transformer::gradient_arena() const {
  CHECK(gradients_enabled());
  return *gradients_.at(used_);
}

// An adapter's dropout is drawn for each sequence: then no two of them compute the same.
forward::RowsPtr Transformer::rows_of(const PackedBatch& batch) const {
  const bool drops = gradients_enabled() && c10::GradMode::is_enabled() && !used_.empty() &&
                     adapters_.at(used_).config().dropout > 0;
  return std::make_shared<const forward::Rows>(batch, rope_, batch.share_beginnings && !drops);
}

at::Tensor Transformer::hidden_states(const forward::RowsPtr& rows, const PassOptions& how) const {
  return passes().hidden_states(rows, attend({*pool_, how}, rows), how);
}

StageStream* Transformer::stream() const { return passes().stream(); }

bool Transformer::has_tied_stages() const { return passes().has_tied_stages(); }

void Transformer::wait_for_embeddings(const forward::Rows& rows, bool learns) const {
  passes().wait_for_embeddings(rows, learns);
}

void Transformer::settle_embeddings(const forward::Rows& rows) const {
  passes().settle_embeddings(rows);
}

Result<ChunkPass> Transformer::chunk_pass(int chunk, const PackedBatch& batch,
                                          const OutputOptions& options,
                                          const PassOptions& how) const {
  if (Status status = check_outputs(batch, options); !status.ok()) return status;
  return guarded<ChunkPass>(kForward, [&] {
    ChunkPass made{.rows = rows_of(batch), .hidden = {}, .outputs = {}};
    made.hidden = passes().chunk_states(chunk, made.rows, attend({*pool_, how}, made.rows), how);
    if (stream()->ends_with(chunk))
      made.outputs = outputs_of(made.hidden, *made.rows, batch, options, how);
    return made;
  });
}

Status Transformer::check_outputs(const PackedBatch& batch, const OutputOptions& options) const {
  if (Status status = batch.validate(config_.vocab_size, config_.max_position_embeddings);
      !status.ok())
    return status;
  for (const std::string& name : options.heads) {
    if (find_head(name)) continue;
    std::string known;
    for (const HeadConfig& head : config_.output_heads)
      known += (known.empty() ? "" : ", ") + head.name;
    return runtime::invalid_argument("this model has no head called " + name + " (" +
                                     (known.empty() ? "it has none" : "it has " + known) + ")");
  }
  if ((options.states || options.of_logits) && config_.task != ModelTask::kCausalLm)
    return runtime::invalid_argument(kNoLogits);
  if ((options.states || options.of_logits) && batch.targets.empty())
    return runtime::invalid_argument(kNoTargets);
  if (!options.logprobs) return {};
  if (config_.task != ModelTask::kCausalLm)
    return runtime::invalid_argument(
        "log-probabilities of a classifier: it has no output layer over the vocabulary");
  const float temperature = options.logprobs->temperature;
  if (!(temperature > 0.0F) || !std::isfinite(temperature))
    return runtime::invalid_argument("temperature " + std::to_string(temperature) +
                                     " must be above 0");
  CHECK(options.logprobs->logit_rows_max > 0);
  if (batch.targets.empty()) return runtime::invalid_argument(kNoTargets);
  return {};
}

std::optional<std::size_t> Transformer::find_head(std::string_view name) const {
  for (std::size_t i = 0; i < config_.output_heads.size(); ++i) {
    if (config_.output_heads[i].name == name) return i;
  }
  return std::nullopt;
}

at::Tensor Transformer::predicting_states(const at::Tensor& hidden, const forward::Rows& rows,
                                          const PackedBatch& batch, const PassOptions& how) const {
  std::vector<std::int64_t> predicting;
  for (const std::int64_t target : batch.targets) predicting.push_back(rows.row(target - 1));
  return passes().last_norm(ops::select_rows(hidden, predicting), how);
}

TokenLogprobs Transformer::logprobs_of(const at::Tensor& states_NH, const PackedBatch& batch,
                                       const LogprobOptions& options,
                                       const PassOptions& how) const {
  std::vector<std::int32_t> targets;
  for (const std::int64_t target : batch.targets)
    targets.push_back(batch.ids[static_cast<std::size_t>(target)]);
  ops::LmHeadOutputs out = passes().logprobs(states_NH, targets,
                                             {.temperature = options.temperature,
                                              .with_entropy = options.with_entropy,
                                              .with_squares = options.with_squares,
                                              .rows_max = options.logit_rows_max,
                                              .kept_bytes_max = options.kept_bytes_max},
                                             how);
  return {std::move(out.logprob), std::move(out.entropy), std::move(out.squares)};
}

Outputs Transformer::outputs_of(const at::Tensor& hidden, const forward::Rows& rows,
                                const PackedBatch& batch, const OutputOptions& options,
                                const PassOptions& how) const {
  Outputs out;
  if (options.logprobs || options.states || options.of_logits)
    out.states_NH = predicting_states(hidden, rows, batch, how);
  if (options.logprobs) {
    const TokenLogprobs there = logprobs_of(out.states_NH, batch, *options.logprobs, how);
    const auto on_host = [](const at::Tensor& t) { return t.defined() ? t.to(at::kCPU) : t; };
    out.logprobs = {there.logprobs_N.to(at::kCPU), on_host(there.entropy_N),
                    on_host(there.squares_N)};
  }
  if (options.of_logits) {
    const Result<OfLogits> numbers = options.of_logits(batch);
    throw_unless_ok(numbers.status());
    out.of_logits_NK = passes().of_logits(out.states_NH, *numbers, how).to(at::kCPU);
  }
  if (!options.states) out.states_NH = at::Tensor();
  if (options.heads.empty()) return out;
  at::Tensor read = of_tokens(hidden, rows);
  if (options.last_tokens_only) {
    std::vector<std::int64_t> last;
    for (std::size_t i = 1; i < batch.cu_seqlens.size(); ++i)
      last.push_back(rows.row(batch.cu_seqlens[i] - 1));
    read = ops::select_rows(hidden, last);
  }
  const at::Tensor normed = passes().last_norm(read, how);
  for (const std::string& name : options.heads)
    out.heads.push_back(passes().head(*find_head(name), normed, how).to(at::kCPU));
  return out;
}

Result<Outputs> Transformer::outputs(const PackedBatch& batch, const OutputOptions& options,
                                     const PassOptions& how) const {
  if (Status status = check_outputs(batch, options); !status.ok()) return status;
  return guarded<Outputs>(kForward, [&] {
    const forward::RowsPtr rows = rows_of(batch);
    const at::Tensor hidden = hidden_states(rows, how);
    Outputs out;
    if (passes().makes_outputs()) out = outputs_of(hidden, *rows, batch, options, how);
    std::vector<at::Tensor> made = {out.logprobs.logprobs_N, out.logprobs.entropy_N,
                                    out.logprobs.squares_N, out.of_logits_NK};
    made.insert(made.end(), out.heads.begin(), out.heads.end());
    made = passes().outputs(hidden, std::move(made));
    out.logprobs = {made[0], made[1], made[2]};
    out.of_logits_NK = made[3];
    out.heads.assign(made.begin() + 4, made.end());
    return out;
  });
}

Result<TokenLogprobs> Transformer::token_logprobs(const PackedBatch& batch,
                                                  const LogprobOptions& options,
                                                  const PassOptions& how) const {
  Result<Outputs> out = outputs(batch, {.logprobs = options, .heads = {}}, how);
  if (!out.ok()) return out.status();
  return std::move(out->logprobs);
}

Result<at::Tensor> Transformer::head(const PackedBatch& batch, const std::string& name,
                                     const PassOptions& how) const {
  Result<Outputs> out = outputs(batch, {.logprobs = std::nullopt, .heads = {name}}, how);
  if (!out.ok()) return out.status();
  return std::move(out->heads.front());
}

Result<at::Tensor> Transformer::state_logits(const at::Tensor& states,
                                             const PassOptions& how) const {
  return guarded<at::Tensor>("logits", [&] { return passes().trained_logits(states, how); });
}

Result<at::Tensor> Transformer::logits(const PackedBatch& batch, const PassOptions& how) const {
  if (Status status = check_outputs(batch, {}); !status.ok()) return status;
  if (config_.task != ModelTask::kCausalLm) return runtime::invalid_argument(kNoLogits);
  return guarded<at::Tensor>(kForward, [&] {
    const forward::RowsPtr rows = rows_of(batch);
    return passes().logits(passes().last_norm(of_tokens(hidden_states(rows, how), *rows), how),
                           how);
  });
}

}  // namespace rl
