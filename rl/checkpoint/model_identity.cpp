#include "rl/checkpoint/model_identity.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/weights/weight_source.h"
#include "runtime/core/xxh3_hash.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::int64_t kSampled = 1024;  // elements at a place: whole blocks of every format

// The first values and some from the middle: training changes nearly all of a tensor. Of a format
// that cannot be read in parts, nothing but name and shape.
void add_values(const WeightSource& source, const TensorInfo& tensor,
                runtime::Xxh3Hash& fingerprint) {
  const std::int64_t count = tensor.element_count();
  std::vector<float> values(static_cast<std::size_t>(std::min(count, kSampled)));
  const auto add = [&](const Status& read) {
    if (read.ok()) fingerprint.add(values.data(), values.size() * sizeof(float));
  };
  if (count <= kSampled) {
    add(source.read_f32(tensor.name, values));
    return;
  }
  for (const std::int64_t first : {std::int64_t{0}, count / 2 / kSampled * kSampled}) {
    values.resize(static_cast<std::size_t>(std::min(kSampled, count - first)));
    add(source.read_f32_range(tensor.name, first, values));
  }
}

}  // namespace

Result<ModelIdentity> identify_model(const std::string& name, const std::filesystem::path& model) {
  const Result<std::unique_ptr<WeightSource>> source = open_weights(model);
  if (!source.ok()) return source.status();
  std::vector<const TensorInfo*> tensors;
  for (const TensorInfo& tensor : (*source)->tensors()) tensors.push_back(&tensor);
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->name < b->name; });
  runtime::Xxh3Hash fingerprint;
  for (const TensorInfo* tensor : tensors) {
    fingerprint.add(tensor->name.c_str(), tensor->name.size() + 1);
    fingerprint.add(tensor->shape.data(), tensor->shape.size() * sizeof(std::int64_t));
    add_values(**source, *tensor, fingerprint);
  }
  return ModelIdentity{.name = name, .fingerprint = fingerprint.hex()};
}

Status check_same_model(const nlohmann::ordered_json& state, const std::filesystem::path& folder,
                        const ModelIdentity& now, const std::string& key) {
  const auto found = state.find(ModelIdentity::kStateKey);
  if (found == state.end() || !found->is_object()) return {};
  const auto text = [&](const char* field) {
    const auto value = found->find(field);
    return value != found->end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  const std::string name = text("name"), fingerprint = text("fingerprint");
  const auto adapter = found->find("adapter");
  if (adapter != found->end() && adapter->is_boolean() && *adapter != now.adapter) {
    const char* const kinds[] = {"all weights", "a LoRA adapter"};
    return runtime::invalid_argument(
        folder.string() + ": of a run that trained " + kinds[now.adapter ? 0 : 1] + " of " + name +
        ", and this one trains " + kinds[now.adapter ? 1 : 0] +
        ": set lora_rank and lora_adapter_path as they were, trainer.default_local_dir to a folder "
        "that no other run uses, or start again with trainer.resume_mode=disable");
  }
  if (fingerprint.empty() || fingerprint == now.fingerprint) return {};
  const std::string whose = name == now.name ? name + " as it was then, and " + key + "=" +
                                                   now.name + " has other weights now"
                                             : name + ", and " + key + " is " + now.name;
  return runtime::invalid_argument(
      folder.string() + ": of a run of the model " + whose +
      ": set trainer.default_local_dir to another folder to train this one. If "
      "trainer.resume_from_path names the checkpoint, let it name one of this model. To go on with "
      "the run's model, name that. To start again, set trainer.resume_mode=disable");
}

}  // namespace rl
