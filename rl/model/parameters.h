// All weights of a model in one contiguous fp32 arena, so that sharding, publishing, checkpoints
// and the optimizer work on ranges. Invariant: specs are in a fixed order (Hugging Face's) and
// offsets grow. Every offset is a multiple of kArenaAlignment, and the gaps that this leaves hold
// zeros.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rl/mesh/arena_range.h"
#include "rl/mesh/range_set.h"
#include "rl/model/model_config.h"
#include "rl/model/model_plan.h"
#include "runtime/core/result.h"

namespace rl {

class DeviceArena;
class WeightSource;

/// Where one parameter lies in the arena.
struct ParameterSpec {
  std::string name;                 // Hugging Face's, "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::int64_t> shape;  // row-major; a linear layer's is [out, in]
  std::int64_t offset = 0;          // in elements from the start of the arena
  std::int64_t count = 0;           // product of shape
  bool transposed = false;          // checkpoints store it the other way round
  bool frozen = false;              // a buffer, without a gradient
  bool saved_fp32 = false;          // whatever the dtype that the others are saved in
  FamilyParameter::Init init = FamilyParameter::Init::kNormal;

  bool operator==(const ParameterSpec&) const = default;
};

struct LoadOptions {
  std::optional<std::uint64_t> head_seed = {};  // heads that the checkpoint lacks begin at random
                                                // from it; without, that is an error
  std::optional<RangeSet> only = {};  // elements of the arena that are read, no others: these hold
                                      // anything, and have no memory yet
};

/// Places for these in an arena, one after the other.
std::vector<ParameterSpec> arena_layout(std::vector<FamilyParameter> parameters);

/// The size of an arena with these places, in elements.
std::int64_t arena_elements(std::span<const ParameterSpec> specs);

/// The parameters of `config` in arena order; gradients, optimizer state and checkpoints use the
/// same layout.
std::vector<ParameterSpec> parameter_layout(const ModelConfig& config);

/// Whether `source` has what the parameters are read from. kInvalidArgument: the tensors missing,
/// surplus or of another shape, each by name.
runtime::Status check_weights(const ModelConfig& config, const WeightSource& source,
                              bool gguf_names);

/// A resource: owns the arena. Move-only, since a copy would share the storage; clone() copies.
class Parameters {
 public:
  /// Reads every parameter from whatever open_weights() takes (a Hugging Face folder, a file of
  /// weights) and converts it to fp32. kNotFound: no weights there. kInvalidArgument: the tensors
  /// missing, surplus or of another shape, each by name; nothing is allocated before that is known.
  /// Cost: one pass over the file, on at::get_num_threads() threads.
  static runtime::Result<Parameters> load(const ModelConfig& config,
                                          const std::filesystem::path& model,
                                          const LoadOptions& options = {});

  /// The same from an open source; `gguf_names` says that tensors are named (and q/k rows ordered)
  /// as in GGUF.
  static runtime::Result<Parameters> load(const ModelConfig& config, const WeightSource& source,
                                          bool gguf_names, const LoadOptions& options = {});

  /// Linear layers and embeddings from N(0, initializer_range^2), norms one, biases zero. Equal
  /// seeds give equal bits.
  static Parameters random(const ModelConfig& config, std::uint64_t seed);

  /// All zeros: the layout for gradients, or for weights that will be received.
  static Parameters zeros(const ModelConfig& config);
  static Parameters zeros(std::vector<ParameterSpec> layout);

  /// Those places in an arena that is there: fp32, contiguous, of arena_elements(layout).
  static Parameters in_arena(std::vector<ParameterSpec> layout, at::Tensor arena);

  Parameters(Parameters&&) = default;
  Parameters& operator=(Parameters&&) = default;
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  Parameters clone() const;

  /// The same parameters in a new arena on `device`.
  Parameters to(at::Device device) const;

  /// The same in an arena that comes by pages, of which only `part` is there. Errors: those of
  /// DeviceArena::make() and of caught_status().
  runtime::Result<Parameters> to_pages(at::Device device, const RangeSet& part) const;
  /// An arena of that layout that comes by pages, without memory yet. Errors: the same.
  static runtime::Result<Parameters> in_pages(std::vector<ParameterSpec> layout, at::Device device);
  /// nullptr: the arena does not come by pages of a device.
  const std::shared_ptr<DeviceArena>& pages() const { return pages_; }

  /// fp32 [arena_size()], contiguous. Writing through it changes the model.
  const at::Tensor& arena() const { return arena_; }
  std::int64_t arena_size() const { return arena_.numel(); }

  /// Parameters without the alignment gaps: what people call the size of the model.
  std::int64_t count() const { return count_; }

  std::span<const ParameterSpec> specs() const { return specs_; }

  /// The spec of that name, or nullptr.
  const ParameterSpec* find(std::string_view name) const;

  /// A view of the arena in the parameter's shape. An unknown name is a bug and crashes.
  at::Tensor view(std::string_view name) const;
  at::Tensor view(const ParameterSpec& spec) const;

  /// First element of that parameter; CPU arenas only. An unknown name crashes.
  const float* data(std::string_view name) const;

 private:
  Parameters(std::vector<ParameterSpec> specs, at::Tensor arena);

  std::vector<ParameterSpec> specs_;
  at::Tensor arena_;
  std::shared_ptr<DeviceArena> pages_;
  std::int64_t count_ = 0;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace rl
