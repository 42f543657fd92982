// LoRA adapters: small matrices next to a model's linear layers, kept in PEFT's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "rl/model/lora_config.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "runtime/core/result.h"

namespace rl {

/// The adapter of one linear layer, whose weight is [out, in].
struct LoraModule {
  std::string weight;  // the parameter that it stands next to
  std::string a, b;    // its own parameters: [rank, in] and [out, rank]
  float scale = 0;
};

/// An adapter for models of one architecture. A resource: owns its parameters, in an arena of their
/// own, so that they are trained, published and checkpointed as a model's are. Their names are
/// PEFT's, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight".
class LoraAdapter {
 public:
  /// A new one: A uniform in +-1 / sqrt(in) from `seed`, B zero, so that it changes nothing yet
  /// (PEFT's default). kInvalidArgument: see LoraConfig::validate; a target that is no linear layer
  /// of the model (its linear layers are named).
  static runtime::Result<LoraAdapter> create(const ModelConfig& model, const LoraConfig& config,
                                             std::uint64_t seed);

  /// Reads a PEFT folder: adapter_config.json, and adapter_model.safetensors or adapter_model.bin.
  /// Errors: those of LoraConfig::load and create(); kInvalidArgument: tensors missing, surplus or
  /// of another shape, by name.
  static runtime::Result<LoraAdapter> load(const ModelConfig& model,
                                           const std::filesystem::path& folder);

  LoraAdapter clone() const { return {config_, modules_, parameters_.clone()}; }
  /// The adapter on that device; always a copy.
  LoraAdapter to(at::Device device) const { return {config_, modules_, parameters_.to(device)}; }

  /// Writes such a folder, with fp32 safetensors. Errors: as save_model_folder.
  runtime::Status save(const std::filesystem::path& folder) const;

  /// The names that save() writes, relative to the folder.
  static std::vector<std::filesystem::path> files();

  const LoraConfig& config() const { return config_; }
  const Parameters& parameters() const { return parameters_; }
  const std::vector<LoraModule>& modules() const { return modules_; }

  /// The one next to that weight, or nullptr.
  const LoraModule* module_of(const std::string& weight) const;

  /// Adds `share` times what the adapter adds to each weight to `base`, which has the layout of the
  /// model: 1 merges.
  void add_to(const Parameters& base, float share) const;

 private:
  LoraAdapter(LoraConfig config, std::vector<LoraModule> modules, Parameters parameters);

  LoraConfig config_;
  std::vector<LoraModule> modules_;
  std::unordered_map<std::string, std::size_t> by_weight_;
  Parameters parameters_;
};

}  // namespace rl
