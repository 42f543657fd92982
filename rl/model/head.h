// Heads of a model: their specification, and the registration of custom kinds.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rl/model/model_config.h"
#include "rl/model/model_plan.h"
#include "rl/model/ops.h"
#include "runtime/core/result.h"

namespace rl {

/// `config` with the output layer replaced by a head of `labels` numbers, as Hugging Face's classes
/// ...ForTokenClassification and
/// ...ForSequenceClassification have it. kCausalLm takes such a head away again. A bug for a config
/// that has heads next to its output layer.
ModelConfig with_task(ModelConfig config, ModelTask task, std::int64_t labels = 1);

/// `config` with one more head next to what it has: critic or reward on the policy's backbone.
/// kInvalidArgument: a head of that name is there, no outputs, or an unknown kind (the known ones
/// are named).
runtime::Result<ModelConfig> with_head(ModelConfig config, HeadConfig head);

/// One number a token next to the output layer, under the names that TRL's
/// AutoModelForCausalLMWithValueHead saves.
HeadConfig value_head();

/// What a head computes from. Borrows all of it.
class HeadInputs {
 public:
  HeadInputs(const HeadConfig& head, const at::Tensor& hidden_states,
             std::vector<std::pair<std::string, ops::Weight>> weights, const PassContext& context)
      : config(head), hidden(hidden_states), pass(context), weights_(std::move(weights)) {}

  const HeadConfig& config;
  const at::Tensor&
      hidden;        // [N, hidden_size] after the last norm, for the N tokens that are asked for
  PassContext pass;  // for the operations of ops.h

  /// The parameter called NAME + `suffix`, for the operations of ops.h. A name that the kind did
  /// not declare is a bug.
  ops::Weight weight(std::string_view suffix) const;

  /// The same as a tensor for ATen's operations: what reaches it in backward is added to the
  /// model's gradients.
  at::Tensor parameter(std::string_view suffix) const;

 private:
  std::vector<std::pair<std::string, ops::Weight>> weights_;
};

/// A kind of head: which parameters one has, and what it computes.
struct HeadKind {
  std::string name;

  /// Named NAME + suffix, as HeadInputs::weight() finds them; its own name for each kind of
  /// tensor.
  std::function<std::vector<FamilyParameter>(const ModelConfig& config, const HeadConfig& head)>
      parameters;

  /// [N, outputs]. Rows must not depend on each other, or log-probabilities and values would depend
  /// on what they are batched with.
  std::function<at::Tensor(const HeadInputs& inputs)> compute;
};

/// Makes a kind known to this process, before a model that has one is read or made. A bug: a name
/// that is taken. Safe from several threads.
void register_head_kind(HeadKind kind);

/// The kind of that name, or nullptr.
const HeadKind* find_head_kind(std::string_view name);

}  // namespace rl
