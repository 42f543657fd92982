// ModelIdentity: the name and fingerprint of the model that a run trains. A checkpoint of another
// model is refused by them.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// A value; saved with checkpoints.
struct ModelIdentity {
  std::string name;         // as the user gave it
  std::string fingerprint;  // of its weights, wherever and in whichever format they lie
  bool adapter = false;     // a LoRA adapter of it is trained, not the weights

  nlohmann::ordered_json to_json() const {
    return {{"name", name}, {"fingerprint", fingerprint}, {"adapter", adapter}};
  }

  /// In a run's state, where to_json() stands.
  static constexpr const char* kStateKey = "model";
};

/// Of the weights in `model`: names and shapes of all tensors, and some values of each. Errors:
/// those of open_weights(). Cost: two pages a tensor.
runtime::Result<ModelIdentity> identify_model(const std::string& name,
                                              const std::filesystem::path& model);

/// kInvalidArgument: `state`, of the checkpoint `folder`, is of a run of another model than `now`,
/// which `key` names. Also where one of the two trained an adapter and the other all weights. The
/// message names both, and the cure. A state that does not say (of an earlier version) passes.
runtime::Status check_same_model(const nlohmann::ordered_json& state,
                                 const std::filesystem::path& folder, const ModelIdentity& now,
                                 const std::string& key);

}  // namespace rl
