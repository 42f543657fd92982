// The one transformer definition: what trains, scores and (through the same kernels, over the same
// arena) generates.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/model/dropout.h"
#include "rl/model/gradient_arena.h"
#include "rl/model/lora.h"
#include "rl/model/model_config.h"
#include "rl/model/packed_batch.h"
#include "rl/model/parameters.h"
#include "rl/model/pass_options.h"
#include "rl/model/rope.h"
#include "runtime/core/result.h"

namespace rl {

class Graph;
class LayerListener;
class PassTeam;
namespace forward {
struct Rows;
}

/// How token_logprobs() computes.
struct LogprobOptions {
  float temperature = 1.0F;               // logits are divided by it, as in sampling; above 0
  bool with_entropy = false;              // also return the entropy of each next-token distribution
  bool with_squares = false;              // and the sum of its squared probabilities
  std::int64_t logit_rows_max = 256;      // rows of [rows, vocab] logits computed at a time
  std::int64_t kept_bytes_max = 1 << 28;  // logits kept for backward up to this many bytes; beyond,
                                          // backward computes them again
};

/// Natural-log probabilities of PackedBatch::targets.
struct TokenLogprobs {
  at::Tensor logprobs_N;      // fp32; carries the graph when gradients are on
  at::Tensor entropy_N;       // fp32, in nats; undefined unless asked for
  at::Tensor squares_N = {};  // fp32, the sum of squared probabilities: how likely it is to draw
                              // one token twice; no graph; undefined unless asked for
};

/// What one pass over a batch is asked for. What shares a pass shares the backbone's memory, and
/// one backward() goes through all of it.
struct OutputOptions {
  std::optional<LogprobOptions> logprobs = {};  // of PackedBatch::targets
  std::vector<std::string> heads = {};          // by name, each once
  bool last_tokens_only =
      false;  // heads are read at the last token of each sequence rather than at every token
  bool states = false;  // the last hidden states that PackedBatch::targets are predicted from
};

/// On the host, where losses are computed, wherever the model is; states apart.
struct Outputs {
  TokenLogprobs logprobs;  // undefined unless asked for
  std::vector<at::Tensor>
      heads;  // as asked for: [T, outputs], or [B, outputs] at last tokens; they carry the graph
  at::Tensor states_NH = {};  // on the model's device, with the graph; small beside the logits, so
                              // that state_logits() can make these for some rows at a time
};

struct TransformerOptions {
  int threads = 0;  // of the kernels' pool; 0 takes at::get_num_threads(), which backward uses
  std::string device =
      {};  // of a model that is loaded: where its weights go, see find_device(); empty: the CPU
  /// Of a model that is loaded: what is read of its arena, see LoadOptions::only; null: all.
  std::function<RangeSet(const ModelConfig&)> part = {};
};

/// A decoder-only language model over one arena of parameters.
///
/// Forward passes run the kernels of rl/kernel on the CPU, so a token's log-probability has the
/// same bits here and in the rollout engine, whatever it is batched with. Gradients: after
/// enable_gradients(), `backward()` of anything computed from the outputs adds to gradients(), an
/// arena laid out as parameters(). Parameters themselves are no autograd variables: updating them
/// in place needs no guard, but must not happen between a forward and its backward.
///
/// One thread at a time; must outlive the graphs that it built. Owns its parameters.
class Transformer {
 public:
  /// `parameters` must have the layout of `config`.
  Transformer(ModelConfig config, Parameters parameters, const TransformerOptions& options = {});
  ~Transformer();

  /// Reads config and weights from a Hugging Face folder or a .gguf file. Errors as
  /// ModelConfig::load, Parameters::load and find_device; kResourceExhausted: the device does not
  /// give the memory.
  static runtime::Result<std::unique_ptr<Transformer>> load(const std::filesystem::path& model,
                                                            const TransformerOptions& options = {});

  /// The same with a config of one's own, for instance with_task() or with_head() of the model's. A
  /// head that the checkpoint lacks begins at random from `head_seed`.
  static runtime::Result<std::unique_ptr<Transformer>> load(ModelConfig config,
                                                            const std::filesystem::path& model,
                                                            std::uint64_t head_seed,
                                                            const TransformerOptions& options = {});

  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const ModelConfig& config() const { return config_; }
  const Parameters& parameters() const { return parameters_; }
  const Rope& rope() const { return rope_; }

  /// The pass itself, for who brings keys of its own.
  const Graph& graph() const { return *graph_; }

  /// The threads that the kernels run on; a rollout engine over the same weights can share them.
  kernel::ThreadPool& pool() const { return *pool_; }

  /// Is told of the passes from now on, until stop_telling(), which no pass may go on beside.
  void tell(LayerListener& listener);
  void stop_telling(LayerListener& listener);

  /// Says that a pass has ended, with its backward pass; see LayerListener.
  void end_pass() const;

  /// A pass of no rows: nothing is computed, and the listeners are told as of one. Errors: what
  /// they throw.
  runtime::Status idle_pass(bool with_backward) const;
  /// The backward pass of a pass from which nothing is learned.
  runtime::Status idle_backward() const;

  /// The ranks of a team make each of their passes together from now on: outputs(), backward() and
  /// idle passes are called by all of them, with the same batch, and this model reads its own part
  /// of the weights alone (pass_parts()). Passes of graph() stay its own. kInvalidArgument:
  /// see check_pass_parts(). Borrows the team.
  runtime::Status share_passes(const PassTeam& team);
  /// nullptr: passes are the model's own.
  const PassTeam* team() const { return team_; }

  // -- Adapters: any number on one base, of which one is in use at a time

  /// kInvalidArgument: the name is taken or empty.
  runtime::Status add_adapter(const std::string& name, LoraAdapter adapter);

  /// Passes go through that one from now on; "" is the base alone. An engine over this model
  /// generates with it. Gradients stay with what they are of: what had them enabled finds them as
  /// they were, and what had not is frozen. kNotFound: no such adapter (those there are, are
  /// named). kInvalidArgument: one is merged.
  runtime::Status use_adapter(const std::string& name);
  const std::string& used_adapter() const { return used_; }

  /// nullptr: none of that name.
  const LoraAdapter* adapter(const std::string& name) const;

  /// Adds an adapter to the base's weights, which are then used alone: passes cost what they cost
  /// without. What they were is kept, as large as the layers that the adapter is for. Errors: as
  /// use_adapter.
  runtime::Status merge_adapter(const std::string& name);

  /// Puts the base's weights back to the bit as they were, and uses the adapter beside them.
  /// kInvalidArgument: none is merged.
  runtime::Status unmerge_adapter();

  /// What training changes: the adapter's parameters where one is in use, else the model's.
  const Parameters& trained_parameters() const;

  /// Which passes an adapter's dropout is of; the passes of a model that is trained.
  DropoutPasses& dropout_passes() const { return dropout_passes_; }

  /// Allocates the gradient arena (zeros) of trained_parameters(). Without it the model is frozen
  /// and no pass builds a graph.
  void enable_gradients();
  bool gradients_enabled() const { return gradients_.contains(used_); }

  /// The gradients summed since zero_gradients(), to be read. A bug unless they are enabled.
  const Parameters& gradients() const { return gradient_arena().settled(); }
  void zero_gradients() { gradient_arena().forget(); }
  /// Where they are. A bug unless they are enabled.
  GradientArena& gradient_arena() const;

  /// Log-probability of each target given the tokens before it in its sequence. Builds a graph when
  /// gradients are enabled and at::GradMode is on; otherwise layer after layer reuses the memory,
  /// which is how reference and old log-probs are computed. kInvalidArgument: see
  /// PackedBatch::validate, or a temperature that is not above 0. kResourceExhausted: out of
  /// memory.
  runtime::Result<TokenLogprobs> token_logprobs(const PackedBatch& batch,
                                                const LogprobOptions& options = {},
                                                const PassOptions& how = {}) const;

  /// Several things of one pass. Errors as token_logprobs(); also kInvalidArgument for a head that
  /// the model does not have, or log-probabilities of a classifier.
  runtime::Result<Outputs> outputs(const PackedBatch& batch, const OutputOptions& options,
                                   const PassOptions& how = {}) const;

  /// What a head gives for every token, [T, outputs]. Errors as outputs().
  runtime::Result<at::Tensor> head(const PackedBatch& batch, const std::string& name,
                                   const PassOptions& how = {}) const;

  /// Logits of rows of Outputs::states_NH, fp32 [rows, V], not divided by a temperature; they carry
  /// the graph where the states do or the output layer is trained. kResourceExhausted: out of
  /// memory.
  runtime::Result<at::Tensor> state_logits(const at::Tensor& states,
                                           const PassOptions& how = {}) const;

  /// Logits before temperature, fp32 [T, V]: for tests and debugging, since it keeps all of them.
  /// Errors as token_logprobs().
  runtime::Result<at::Tensor> logits(const PackedBatch& batch, const PassOptions& how = {}) const;

 private:
  void rebuild();
  void tell_graphs();
  const Graph& passes() const { return shared_graph_ ? *shared_graph_ : *graph_; }
  runtime::Status check_adapter(const std::string& name) const;
  std::shared_ptr<const forward::Rows> rows_of(const PackedBatch& batch) const;
  // [rows, hidden] before the last norm
  at::Tensor hidden_states(const std::shared_ptr<const forward::Rows>& rows,
                           const PassOptions& how) const;
  std::optional<std::size_t> find_head(std::string_view name) const;
  runtime::Status check_outputs(const PackedBatch& batch, const OutputOptions& options) const;
  at::Tensor predicting_states(const at::Tensor& hidden, const forward::Rows& rows,
                               const PackedBatch& batch, const PassOptions& how) const;
  Outputs outputs_of(const at::Tensor& hidden, const forward::Rows& rows, const PackedBatch& batch,
                     const OutputOptions& options, const PassOptions& how) const;
  TokenLogprobs logprobs_of(const at::Tensor& states_NH, const PackedBatch& batch,
                            const LogprobOptions& options, const PassOptions& how) const;

  ModelConfig config_;
  Parameters parameters_;
  Rope rope_;
  std::unique_ptr<kernel::ThreadPool> pool_;
  std::map<std::string, std::unique_ptr<GradientArena>>
      gradients_;  // by adapter; "": the model's own
  mutable DropoutPasses dropout_passes_;
  const PassTeam* team_ = nullptr;
  std::unique_ptr<Graph> graph_;         // of the whole model; with a team without gradients
  std::unique_ptr<Graph> shared_graph_;  // with a team, of the rank's part
  std::vector<LayerListener*> listeners_;
  std::map<std::string, LoraAdapter> adapters_;
  std::string used_;
  std::string merged_;
  std::vector<at::Tensor> before_merge_;  // the weights beside which it stands
};

}  // namespace rl
