#include "rl/model/head.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "rl/model/autograd.h"
#include "rl/model/family.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

HeadKind linear_kind() {
  return {
      .name = "linear",
      .parameters =
          [](const ModelConfig& config, const HeadConfig& head) {
            std::vector<FamilyParameter> list = {
                {.name = head.name + ".weight", .shape = {head.outputs, config.embedding_width()}}};
            if (head.bias)
              list.push_back({.name = head.name + ".bias",
                              .shape = {head.outputs},
                              .init = FamilyParameter::Init::kZeros});
            return list;
          },
      .compute =
          [](const HeadInputs& inputs) {
            return ops::linear(
                inputs.pass, inputs.hidden,
                ops::Linear{inputs.weight(".weight"),
                            inputs.config.bias ? inputs.weight(".bias") : ops::Weight()});
          }};
}

// Kinds are never taken away, so that pointers to them stay good.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const HeadKind>, std::less<>> kinds;

  Registry() { kinds.emplace("linear", std::make_unique<const HeadKind>(linear_kind())); }
};

Registry& registry() {
  static Registry all;
  return all;
}

std::string known_kinds() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::string names;
  for (const auto& [name, kind] : all.kinds) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

void register_head_kind(HeadKind kind) {
  CHECK(!kind.name.empty() && kind.parameters && kind.compute);
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  const std::string name = kind.name;
  const bool added =
      all.kinds.emplace(name, std::make_unique<const HeadKind>(std::move(kind))).second;
  CHECK(added);
}

const HeadKind* find_head_kind(std::string_view name) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  const auto found = all.kinds.find(name);
  return found == all.kinds.end() ? nullptr : found->second.get();
}

HeadConfig value_head() { return {.name = "v_head.summary", .outputs = 1, .bias = true}; }

ModelConfig with_task(ModelConfig config, ModelTask task, std::int64_t labels) {
  CHECK(config.task != ModelTask::kCausalLm || config.output_heads.empty());
  CHECK(labels > 0);
  config.task = task;
  config.output_heads.clear();
  const Family& family = family_of(config);
  if (task == ModelTask::kTokenClassification)
    config.output_heads = {
        {.name = std::string(family.token_classifier), .outputs = labels, .bias = true}};
  if (task == ModelTask::kSequenceClassification)
    config.output_heads = {{.name = "score", .outputs = labels}};
  return config;
}

runtime::Result<ModelConfig> with_head(ModelConfig config, HeadConfig head) {
  if (head.name.empty() || head.outputs < 1)
    return runtime::invalid_argument("a head needs a name and at least one output");
  if (find_head_kind(head.kind) == nullptr) {
    return runtime::invalid_argument("head " + head.name + ": no kind called \"" + head.kind +
                                     "\" is known (" + known_kinds() + ")");
  }
  for (const HeadConfig& other : config.output_heads) {
    if (other.name == head.name)
      return runtime::invalid_argument("there is a head called " + head.name + " already");
  }
  config.output_heads.push_back(std::move(head));
  return config;
}

ops::Weight HeadInputs::weight(std::string_view suffix) const {
  const auto found = std::find_if(weights_.begin(), weights_.end(), [&](const auto& entry) {
    return entry.first == config.name + std::string(suffix);
  });
  CHECK(found != weights_.end());
  return found->second;
}

at::Tensor HeadInputs::parameter(std::string_view suffix) const {
  const ops::Weight found = weight(suffix);
  at::Tensor value = found.value.alias();
  if (!found.trained() || !c10::GradMode::is_enabled()) return value;
  const at::Tensor anchor = autograd::anchor();
  autograd::connect("head parameter backward", value, {anchor}, [found](const auto& grads) {
    if (grads[0].defined()) found.add_gradient(grads[0]);
    return std::vector<at::Tensor>(1);
  });
  return value;
}

}  // namespace rl
