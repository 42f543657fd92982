// The memory that the processes of a run will take, from the model's configuration alone. Pure
// arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/mesh/pass_sharing.h"
#include "rl/mesh/zero_level.h"
#include "rl/model/model_config.h"
#include "runtime/core/result.h"

namespace rl {

/// One thing that takes memory in a process.
struct MemoryPart {
  std::string name;
  std::int64_t bytes = 0;
};

/// A process of a role; all of a role are alike.
struct RoleMemory {
  std::string role;
  std::int64_t workers = 1;
  std::vector<MemoryPart> parts;
  bool weights_leave = false;  // the device, between calls; see OffloadOptions
  bool gradients_leave = false;
  bool concurrent = false;  // at work while others are: the reward, while a reference scores
  bool devices_of_its_own = false;  // what generates a step ahead
  std::int64_t device_bytes = 0;    // of a stage's worker: the peak of its device; 0: it has none

  std::int64_t total() const;
};

/// What of a run decides its memory.
struct MemoryOptions {
  std::int64_t trained_elements = -1;  // of an adapter; -1: all weights are trained
  std::int64_t forward_tokens = 0;     // of one forward pass, at most
  std::int64_t output_tokens = 0;      // of these, those whose log-probs are wanted
  std::int64_t sequences = 0;          // generated together by one worker
  std::int64_t positions = 0;          // of a sequence
  std::int64_t workers = 1;            // that train together
  ZeroLevel zero = ZeroLevel::kNone;   // what they keep once; of one worker nothing
  std::int64_t shard_ranks = 0;        // see UnitWeightsOptions
  PassSharing sharing = {};            // of the workers that share each pass
  bool reshard_after_forward = true;   // see UnitWeightsOptions
  std::int64_t gradient_leaves = 0;    // see GradientRound; 0: one a worker
  bool compresses_gradients = false;   // see CompressedSum
  bool orthogonalizes = false;         // see Muon
  bool one_pass_leaves = false;        // a leaf is never more than one pass
  bool recompute_layers = false;       // in backward
  bool bf16 = false;                   // see PassOptions
  std::int64_t sequences_max = 0;      // EngineOptions::sequences_max; 0: its default
  bool on_device = false;              // the engine's cache is bounded by the device alone
};

/// Elements of the arena of all weights.
std::int64_t weight_elements(const ModelConfig& config);

/// What a forward pass keeps of a token for backward, in bytes, without the output layer.
std::int64_t activation_bytes(const ModelConfig& config, bool adapter);

/// Whether it is there during a call alone: activations, what of a model is gathered, and the like.
bool is_of_passes(const MemoryPart& part);
/// The name of all weights of a model that the workers keep once, while they generate. Then what
/// passes take is not there.
inline constexpr const char* kGatheredPart = "gathered weights";
/// The name of what Muon needs in a step, behind the passes. It includes the copy of the worker's
/// part of the weights that the step is taken on.
inline constexpr const char* kMatricesPart = "matrices of a step";
/// What comes and goes: parts of passes together, or gathered weights, or a step's matrices, where
/// these are more.
std::int64_t bytes_in_calls(std::span<const MemoryPart> parts);

/// The name of what the worker has that writes a checkpoint alone, and no other.
inline constexpr const char* kCheckpointPart = "checkpoint being written";
/// The name of what each worker has where all write their parts.
inline constexpr const char* kCheckpointShare = "part of a checkpoint being written";
/// Trained weights and AdamW's two moments that are copied so that steps go on meanwhile: a
/// worker's part of what all keep once. Nothing where they are written as they are. Workers see a
/// folder that all share.
std::vector<MemoryPart> checkpoint_memory(const ModelConfig& config, const MemoryOptions& options,
                                          bool copies);

/// Of a policy worker (generating and training), and of a role that only scores, of whose options
/// `zero` is kNone or kWeights.
std::vector<MemoryPart> training_memory(const ModelConfig& config, const MemoryOptions& options);
std::vector<MemoryPart> scoring_memory(const ModelConfig& config, const MemoryOptions& options);

/// What of a role is on its device, where models are on one.
struct DeviceMemory {
  std::int64_t always = 0;
  std::int64_t at_work = 0;  // next to it, while one of its calls goes on
  bool concurrent = false;
};

/// What a process with a model takes of a CUDA device next to tensors. That is its context with the
/// kernels of LibTorch, and a workspace of cuBLAS for each thread that multiplies (the caller's and
/// autograd's).
std::int64_t device_context_bytes();

/// Of a device by its name: none but a CUDA device's is known.
inline std::int64_t context_bytes(std::string_view device) {
  return device.starts_with("cuda") ? device_context_bytes() : 0;
}

/// What decides the size of an engine's cache on a device, whose model is there already.
struct CachePlan {
  std::int64_t device_total = 0;  // bytes of the device
  std::int64_t device_free = 0;   // of them now, with weights and gradients in place
  double utilization = 0.5;       // of the device that weights and cache may take together
  std::int64_t weights = 0;       // bytes
  std::int64_t passes = 0;        // bytes that passes will take at most
  std::int64_t token_bytes = 0;   // keys and values of a token
  std::int64_t longest = 0;       // tokens of a sequence
  std::int64_t sequences = 0;     // at most, together
};

/// Bytes of the cache: what all sequences need at their longest, or what the device has room for.
/// kResourceExhausted: not one sequence fits; says what takes the room, and which keys change it.
runtime::Result<std::int64_t> plan_cache(const CachePlan& plan);

/// Keys and values of a token of that model.
std::int64_t cache_token_bytes(const ModelConfig& config);

/// The largest of `tokens`, its half, its quarter and so on whose passes with backward take at most
/// `bytes`. It is not below 2048 unless `tokens` is. What does not fit then is told by
/// plan_cache(), or where memory is wanted.
std::int64_t tokens_that_fit(const ModelConfig& config, MemoryOptions options, std::int64_t tokens,
                             std::int64_t bytes);

/// What the passes of `parts` take: their activations and rounded copies.
std::int64_t pass_bytes(std::span<const MemoryPart> parts);

/// What passes take goes back to the device only where weights or gradients leave; else the process
/// keeps it for its next one. `context`: of the process, next to tensors.
DeviceMemory device_memory(const RoleMemory& role, std::int64_t context = device_context_bytes());

/// What of them is on the host at some time: all but what passes take. Weights are read there
/// before they go to a device, and what trains keeps a copy.
std::vector<MemoryPart> host_memory(std::span<const MemoryPart> parts);

/// What devices have at most, whose roles work one after the other but for those that work next to.
std::int64_t device_peak(std::span<const DeviceMemory> roles);

/// The process itself: LibTorch and the runtime, and what backward brings with it where there is
/// one. With a model on a CUDA device it has the libraries of CUDA, too, and what they keep on the
/// host.
MemoryPart process_memory(bool trains, bool on_device = false);

/// "135 MB": two to three digits.
std::string bytes_text(std::int64_t bytes);

}  // namespace rl
