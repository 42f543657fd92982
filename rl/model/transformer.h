// The one transformer definition, for training and scoring. Generation runs the same kernels over
// the same parameter arena.
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

/// How the memory of gradients on a device comes.
enum class GradientMemory { kWhole, kByPages };

class Graph;
class LayerListener;
class PassTeam;
class StageStream;
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
  at::Tensor squares_N = {};  // fp32, the sum of squared probabilities: the probability that two
                              // samples are the same token; no graph; undefined unless asked for
};

/// The outputs that one pass over a batch computes. Outputs of one pass share the memory of the
/// backbone, and one backward().
struct OutputOptions {
  std::optional<LogprobOptions> logprobs = {};  // of PackedBatch::targets
  std::vector<std::string> heads = {};          // by name, each once
  // Read heads only at the last token of each sequence rather than at every token.
  bool last_tokens_only = false;
  bool states = false;  // the last hidden states, from which PackedBatch::targets are predicted
  /// Numbers of the logits from which targets are predicted. It is called once for a pass, on each
  /// rank that has some of its logits.
  std::function<runtime::Result<OfLogits>(const PackedBatch& batch)> of_logits = {};
};

/// On the host, where losses are computed, for a model on any device; the states excepted.
struct Outputs {
  TokenLogprobs logprobs;  // undefined unless asked for
  // As OutputOptions::heads: [T, outputs], or [B, outputs] at last tokens; they carry the graph.
  std::vector<at::Tensor> heads;
  at::Tensor states_NH = {};     // on the model's device, with the graph; smaller than the logits,
                                 // which state_logits() makes from them for some rows at a time
  at::Tensor of_logits_NK = {};  // as OutputOptions::of_logits; carries the graph
};

/// What a chunk of a pipeline's stage made of a pass.
struct ChunkPass {
  std::shared_ptr<const forward::Rows> rows;
  at::Tensor hidden;  // of its last layer, with the graph
  Outputs outputs;    // of the last chunk
};

struct TransformerOptions {
  int threads = 0;  // of the kernels' pool; 0 takes at::get_num_threads(), which backward uses
  // The device for the weights of a loaded model, see find_device(); empty: the CPU.
  std::string device = {};
  /// Which ranges of a loaded model's arena to read, see LoadOptions::only; null: all. On another
  /// device than the CPU the arena comes by pages then, see DeviceArena.
  std::function<RangeSet(const ModelConfig&)> part = {};
};

/// A decoder-only language model over one arena of parameters.
///
/// Forward passes run the kernels of rl/kernel on the CPU. A token's log-probability thus has the
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

  /// The same with a given config, for instance with_task() or with_head() of the model's. A head
  /// that the checkpoint lacks is initialised at random from `head_seed`.
  static runtime::Result<std::unique_ptr<Transformer>> load(ModelConfig config,
                                                            const std::filesystem::path& model,
                                                            std::uint64_t head_seed,
                                                            const TransformerOptions& options = {});

  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const ModelConfig& config() const { return config_; }
  const Parameters& parameters() const { return parameters_; }
  const Rope& rope() const { return rope_; }

  /// The graph itself, for callers that supply their own keys and values.
  const Graph& graph() const { return *graph_; }

  /// The threads that the kernels run on; a rollout engine over the same weights can share them.
  kernel::ThreadPool& pool() const { return *pool_; }

  /// Notifies `listener` of passes until stop_telling(), which must not be called during a pass.
  void tell(LayerListener& listener);
  void stop_telling(LayerListener& listener);

  /// Notifies the listeners that a pass is about to begin, for makers of several passes in a row;
  /// see LayerListener.
  void begin_pass(bool another_follows) const;

  /// Notifies the listeners that a pass and its backward pass have ended; see LayerListener.
  void end_pass() const;

  /// A pass without rows: computes nothing, but notifies the listeners as a pass does. Errors: what
  /// they throw.
  runtime::Status idle_pass(bool with_backward) const;
  /// The backward pass of a pass without a loss: only notifies the listeners.
  runtime::Status idle_backward() const;

  /// From now on the ranks of a team make each pass together. All of them call outputs(),
  /// backward() and idle passes, with the same batch. This model reads only its own part of the
  /// weights (pass_parts()). Passes of graph() are not shared. kInvalidArgument: see
  /// check_pass_parts(). Borrows the team.
  runtime::Status share_passes(const PassTeam& team);
  /// nullptr: passes are not shared.
  const PassTeam* team() const { return team_; }

  // -- Stages of a pipeline with several passes in flight; see StageStream

  /// null: one pass goes after the other.
  StageStream* stream() const;
  /// The part of a chunk of this stage in a pass. Errors as outputs().
  runtime::Result<ChunkPass> chunk_pass(int chunk, const PackedBatch& batch,
                                        const OutputOptions& options, const PassOptions& how) const;
  /// See Graph; they throw what ATen throws, and a StatusException.
  bool has_tied_stages() const;
  void wait_for_embeddings(const forward::Rows& rows, bool learns) const;
  void settle_embeddings(const forward::Rows& rows) const;

  // -- Adapters: any number on one base, of which one is in use at a time

  /// kInvalidArgument: the name is taken or empty.
  runtime::Status add_adapter(const std::string& name, LoraAdapter adapter);

  /// Passes use that adapter from now on; "" is the base alone. An engine over this model generates
  /// with it. Each adapter keeps its gradients: they are found unchanged if they were enabled, and
  /// the adapter is frozen if not. kNotFound: no such adapter (the message names those that exist).
  /// kInvalidArgument: an adapter is merged.
  runtime::Status use_adapter(const std::string& name);
  const std::string& used_adapter() const { return used_; }

  /// nullptr: there is no adapter of that name.
  const LoraAdapter* adapter(const std::string& name) const;

  /// Adds an adapter to the base's weights, so that passes cost as much as without it. The original
  /// weights are kept: as much memory as the layers that the adapter changes. Errors: as
  /// use_adapter().
  runtime::Status merge_adapter(const std::string& name);

  /// Restores the base's weights to the same bits, and uses the adapter without merging.
  /// kInvalidArgument: none is merged.
  runtime::Status unmerge_adapter();

  /// The parameters that training updates: the adapter's if one is in use, else the model's.
  const Parameters& trained_parameters() const;

  /// The counter of training passes, from which an adapter's dropout masks are derived.
  DropoutPasses& dropout_passes() const { return dropout_passes_; }

  /// Allocates the gradient arena (zeros) of trained_parameters(). Without it the model is frozen
  /// and no pass builds a graph. By pages on a device, it has no memory yet. Throws what ATen
  /// throws, and a StatusException: those of DeviceArena::make().
  void enable_gradients(GradientMemory memory = GradientMemory::kWhole);
  bool gradients_enabled() const { return gradients_.contains(used_); }

  /// The sum of gradients since zero_gradients(), read-only. A bug unless they are enabled.
  const Parameters& gradients() const { return gradient_arena().settled(); }
  void zero_gradients() { gradient_arena().forget(); }
  /// The arena of the gradients. A bug unless they are enabled.
  GradientArena& gradient_arena() const;

  /// Log-probability of each target given the tokens before it in its sequence. Builds a graph when
  /// gradients are enabled and at::GradMode is on. Otherwise layer after layer reuses the memory,
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

  /// Logits of rows of Outputs::states_NH, fp32 [rows, V], not divided by a temperature. They carry
  /// the graph where the states do. kResourceExhausted: out of memory.
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
  std::vector<at::Tensor> before_merge_;  // copies of the weights that it changed
};

}  // namespace rl
