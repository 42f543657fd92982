// Learner: a model, its optimizer and its fellow workers. What every trained role (policy, later
// critic and reward model) is built on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/data_ranks.h"
#include "rl/comm/training_ranks.h"
#include "rl/model/offload.h"
#include "rl/model/transformer.h"
#include "rl/optim/gradient_codec.h"
#include "rl/optim/layer_pulse.h"
#include "rl/optim/learner_part.h"
#include "rl/optim/learner_snapshot.h"
#include "rl/optim/muon_options.h"
#include "rl/optim/optimizer.h"
#include "rl/optim/optimizer_shards.h"
#include "rl/optim/pass_ranks.h"
#include "rl/optim/sgd.h"
#include "rl/optim/unit_shards.h"
#include "rl/optim/unit_weights.h"
#include "runtime/core/result.h"

namespace rl {

enum class OptimizerKind { kAdamW, kSgd, kMuon };

/// "AdamW", "SGD", "Muon". kInvalidArgument: another name.
runtime::Result<OptimizerKind> parse_optimizer(std::string_view name);

struct LearnerOptions {
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  AdamWOptions adamw;  // of kMuon, too: what is no matrix
  SgdOptions sgd;
  MuonOptions muon;
  bool decay_norms = false;                // weight decay of norms and biases, too
  double grad_norm_max = 1.0;              // gradients are scaled down to it; 0: never
  ZeroLevel zero = ZeroLevel::kNone;       // see OptimizerShards and UnitShards
  std::int64_t shard_ranks = 0;            // at ZeroLevel::kWeights; see UnitWeightsOptions
  bool reshard_after_forward = true;       // at ZeroLevel::kWeights; see UnitWeightsOptions
  GradientCompressionOptions compression;  // up to ZeroLevel::kMoments, without a team
  PassSharing sharing;                     // who makes TrainingRanks reads how many ranks there are
  OffloadOptions offload;                  // of a model on a device
};

/// What a rank's Learner needs of a model that is loaded for it, as TransformerOptions::part. It is
/// the rank's part, where weights are kept once, and what a team's rank keeps for its passes. null:
/// all.
std::function<RangeSet(const ModelConfig&)> weights_needed(const LearnerOptions& options,
                                                           const TrainingRanks& ranks);

/// What one optimizer step did.
struct OptimizerReport {
  double grad_norm = 0.0;  // of the whole gradient, before clipping
  bool skipped = false;    // the gradient was not finite; nothing changed
};

/// Matrices and embeddings: what weight decay applies to. Norms and biases are left out unless
/// asked for.
std::vector<ArenaRange> decayed_ranges(std::span<const ParameterSpec> specs,
                                       bool with_norms = false);

/// Data-parallel training of one Transformer: of all its weights, or of the adapter that is in use.
/// Invariant: after apply() all ranks hold the same bits. Where the model is on another device than
/// the CPU, its optimizer and its state stay on the host. Gradients come over, weights go back; Ren
/// et al. 2021, "ZeRO-Offload". A resource; one thread at a time.
class Learner {
 public:
  /// Enables the model's gradients; it keeps the adapter that it uses now. All ranks must begin
  /// with equal weights, or the parts of them that weights_needed() names. A team's ranks share
  /// each of their passes (PassTeam, Passes), and all ranks keep gradients and moments once; its
  /// model is on the CPU.
  Learner(std::unique_ptr<Transformer> model, TrainingRanks ranks, const LearnerOptions& options);

  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  ~Learner();

  Transformer& model() { return *model_; }
  const Transformer& model() const { return *model_; }
  DataRanks& ranks() { return ranks_; }

  /// Where this rank stands, and the end of what it does with the others; see Communicator. From
  /// any thread.
  Pulse pulse() const;
  void abort(const runtime::Status& why) const {
    communicator_->abort(why);
    if (team_) team_->abort(why);
  }

  /// Passes of another model of this rank, frozen, are signs of its progress as well; that model
  /// makes none once this has gone.
  void watch_passes_of(Transformer& frozen) { frozen.tell(layer_pulse_); }
  /// Whether the ranks keep the optimizer's state once.
  bool is_sharded() const { return shards_->is_sharded(); }

  /// All weights are there while one lives.
  class Gathered {
   public:
    Gathered() = default;
    explicit Gathered(UnitWeights* weights) : weights_(weights) {}
    Gathered(Gathered&& other) noexcept : weights_(std::exchange(other.weights_, nullptr)) {}
    Gathered& operator=(Gathered&&) = delete;
    ~Gathered() {
      if (weights_ != nullptr) weights_->scatter();
    }

   private:
    UnitWeights* weights_ = nullptr;
  };

  /// Where weights are sharded, brings all of them together, for what reads them otherwise than by
  /// passes that all ranks make: generating, above all. Collective. Errors: those of Communicator.
  runtime::Result<Gathered> gathered();
  /// Whether no rank keeps all weights.
  bool weights_are_sharded() const { return unit_weights_ && !unit_weights_->keeps_all(); }

  /// While it lives the model may be used: without it its weights, and without `with_gradients` its
  /// gradients, may have left their device (LearnerOptions::offload).
  [[nodiscard]] Offload::Stay stay(bool with_gradients = false) const {
    return offload_->stay(with_gradients);
  }

  /// See Offload::await.
  runtime::Status await_weights() const { return offload_->await(); }

  /// Adds the gradients of all ranks, clips them, takes one optimizer step and zeroes them.
  /// Gradients must come from a loss that was divided by totals over all ranks. A gradient that is
  /// not finite is dropped on all ranks alike. Errors: those of Communicator and of
  /// caught_status().
  runtime::Result<OptimizerReport> apply(double learning_rate);

  /// Where a step's gradient is a sum of leaves (see GradientRound): this rank's passes are of that
  /// one from now on.
  void begin_leaf(std::int64_t leaf);

  /// Whether it must be told which pass is a leaf's last one: gradients are added up in it.
  bool sums_in_passes() const { return shards_->sums_in_passes(); }
  /// It is the one behind the next `passes_before`: of the round whose leaves `adds` tells; see
  /// add_round(), which follows. Without rounds all ranks' leaves are added, in one last round.
  void expect_last_pass(std::span<const std::uint8_t> adds, bool last_round,
                        std::size_t passes_before = 0) {
    shards_->expect_last_pass(adds, last_round, passes_before);
  }

  /// Elements of sharded weights that had memory at most since the last call, for tests of it; -1
  /// where all of them always have.
  std::int64_t most_weights_there();

  /// Adds up the gradients of a round, of the ranks with a 1 in `adds`, behind those of the rounds
  /// before. All ranks call it for each round, and then apply(). Errors: those of apply().
  runtime::Status add_round(std::span<const std::uint8_t> adds, bool last);

  /// Forgets the optimizer's moments, and what compressed gradients have yet to send: what comes
  /// next is another objective.
  void reset_optimizer();

  /// What it has of the optimizer's state, of the size of StepShards::home(); for tests of what
  /// gradients were.
  std::vector<OptimizerState> optimizer_state() const { return optimizer_->state(); }

  /// Of what is trained, and this rank keeps: equal on two ranks exactly when it has the same bits.
  /// Cost: one read of it.
  std::uint64_t weights_checksum() const;

  /// kInternal unless all ranks have the same weights; every rank must call it. Of sharded weights
  /// there is one copy.
  runtime::Status check_equal_weights();

  /// Before save() and snapshot(), on all ranks: whether each of them writes its part, by these
  /// calls on every rank (write_part()). It does where the ranks keep what is trained once and all
  /// see `root`, a folder above the one that save() will be given. Else rank 0 alone writes, after
  /// collect_state(). Errors: those of Communicator.
  runtime::Result<bool> agree_on_parts(const std::filesystem::path& root);

  /// The other way, on all ranks. Where the optimizer's state, or weights, are sharded, rank 0
  /// receives them whole, and writes them by save() or snapshot(). Memory there: that of both,
  /// until they are written or part of a snapshot.
  runtime::Status collect_state();

  /// Writes what is trained and the optimizer's state into `folder`; see write_learner().
  runtime::Result<std::vector<std::filesystem::path>> save(const std::filesystem::path& folder);

  /// The same as a copy, to be written later: in the memory of `into`, where there is one already.
  void snapshot(std::unique_ptr<LearnerSnapshot>& into);

  /// Reads what save() wrote; what compressed gradients have yet to send is none of it, and begins
  /// with nothing. kInvalidArgument: another architecture or adapter, a damaged file. On failure
  /// the weights are unspecified.
  runtime::Status load(const std::filesystem::path& folder);

  /// Which of the two folders below save()'s holds what was trained.
  const char* weights_folder() const;

 private:
  const LoraAdapter* adapter() const;
  const at::Tensor& weights() const;
  LearnerState state() const;
  LearnerPart part() const;
  bool has_unit_shards() const;
  void keep_weights_on_host();
  OffloadOptions what_leaves() const;
  std::unique_ptr<StepShards> make_shards();
  std::unique_ptr<StepShards> make_unit_shards(ZeroLevel level);
  void forget_collected();
  void forget_residual();
  void begin_step();
  std::span<float> host_gradients();
  runtime::Result<OptimizerReport> take_step(double learning_rate);
  runtime::Status sum_round(std::span<const std::uint8_t> adds, bool last);
  runtime::Status read_moments(const std::filesystem::path& folder);
  runtime::Status read_weights(const std::filesystem::path& folder);
  runtime::Status load_weights(const std::filesystem::path& folder);

  std::unique_ptr<Transformer> model_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<PassRanks> team_;  // nullopt: this rank makes its passes alone
  CommunicatorRanks ranks_;
  LayerPulse layer_pulse_;
  LearnerOptions options_;
  std::unique_ptr<UnitWeights> unit_weights_;  // from kGradients on
  std::unique_ptr<StepShards> shards_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<at::Tensor> collected_;  // by collect_state()
  at::Tensor collected_weights_;
  bool writes_part_ = false;  // as agree_on_parts() said last
  bool logged_collecting_ = false;
  PackedRanges all_;  // of what is trained
  // Where the model is on another device, what the optimizer works on: the weights and the
  // gradients on the host, of the arena's size.
  at::Tensor host_weights_;
  at::Tensor host_gradients_;
  std::unique_ptr<Offload> offload_;
};

}  // namespace rl
