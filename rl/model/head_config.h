// Heads of a model, next to its output layer over the vocabulary or in its place. A head gives
// numbers for each token, from the same last hidden state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rl {

/// One head. Its parameters lie in the model's arena after those of the backbone, and are saved
/// with them.
struct HeadConfig {
  std::string name = "score";  // of its tensors, as in NAME.weight
  std::string kind =
      "linear";  // how it computes: "linear", or one that register_head_kind() made known
  std::int64_t outputs = 1;  // numbers a token
  bool bias = false;
  bool operator==(const HeadConfig&) const = default;
};

/// What a model is for, in Hugging Face's terms.
enum class ModelTask {
  kCausalLm,             // an output layer over the vocabulary, and whatever heads stand next to it
  kTokenClassification,  // one head and no output layer, read at every token: verl's critic, with
                         // one label
  kSequenceClassification,  // the same, read at the last token of a sequence: a reward model, with
                            // one label
};

}  // namespace rl
