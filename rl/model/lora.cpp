#include "rl/model/lora.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "rl/model/family.h"
#include "rl/model/tensor_mismatches.h"
#include "rl/tokenizer/regex.h"
#include "rl/weights/atomic_file.h"
#include "rl/weights/safetensors.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::string_view kPrefix =
    "base_model.model.";  // how PEFT's wrappers name what they wrap
constexpr std::string_view kWeight = ".weight";
constexpr const char* kAdapterConfigFile = "adapter_config.json";
constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";
constexpr const char* kPickledFile = "adapter_model.bin";

// The weights of a plan's linear layers within and around its blocks, in the order of the arena;
// not routers, nor the output layer.
std::set<ParameterIndex> linear_layers(const ModelPlan& plan) {
  std::set<ParameterIndex> all;
  const auto mlp = [&](const MlpPlan& part) {
    for (const LinearPlan& linear : {part.gate, part.up, part.down}) all.insert(linear.weight);
  };
  for (const LayerPlan& layer : plan.layers) {
    const AttentionPlan& a = layer.attention;
    for (const LinearPlan& linear : {a.q, a.k, a.v, a.o, a.q_down, a.kv_down, a.kv_up})
      all.insert(linear.weight);
    mlp(layer.mlp);
    if (!layer.experts) continue;
    for (const MlpPlan& expert : layer.experts->experts) mlp(expert);
    if (layer.experts->shared) mlp(*layer.experts->shared);
  }
  for (const LinearPlan& linear : {plan.project_in, plan.project_out}) all.insert(linear.weight);
  all.erase(kNoParameter);
  return all;
}

bool is_named(const std::string& module, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return module == name || module.ends_with("." + name);
  });
}

/// Whole-name matching by a regular expression.
class Pattern {
 public:
  static Result<Pattern> compile(const std::string& expression, const std::string& field) {
    Result<Regex> regex = Regex::compile("\\A(?:" + expression + ")\\z");
    if (!regex.ok())
      return regex.status().with_context("LoRA: " + field + " \"" + expression + "\"");
    return Pattern(std::move(*regex));
  }
  bool matches(const std::string& name) {
    bool failed = false;
    return regex_.find(name, 0, scratch_, failed).has_value();
  }

 private:
  explicit Pattern(Regex regex) : regex_(std::move(regex)) {}
  Regex regex_;
  RegexScratch scratch_;
};

// The number of a module's block: of "model.layers.3.mlp.up_proj" 3; -1 where there is none.
std::int64_t block_of(const std::string& module) {
  std::int64_t block = -1;
  std::size_t begin = 0;
  for (int part = 0; begin < module.size(); ++part) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    const std::string_view word = std::string_view(module).substr(begin, end - begin);
    const bool is_number =
        !word.empty() && word.size() < 10 &&
        std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (is_number && part >= 2 && end < module.size() && block < 0)
      block = std::stoll(std::string(word));
    begin = end + 1;
  }
  return block;
}

// What the last parts of these names are: "q_proj, k_proj, ...".
std::string endings(const std::vector<std::string>& modules) {
  std::set<std::string> known;
  for (const std::string& module : modules) known.insert(module.substr(module.rfind('.') + 1));
  std::string text;
  for (const std::string& name : known) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The value of the first pattern that a module's name ends in.
template <class T>
Result<T> by_pattern(const std::vector<std::pair<std::string, T>>& patterns,
                     const std::string& field, const std::string& module, T otherwise) {
  for (const auto& [expression, value] : patterns) {
    Result<Pattern> pattern = Pattern::compile("(?:.*\\.)?(?:" + expression + ")", field);
    if (!pattern.ok()) return pattern.status();
    if (pattern->matches(module)) return value;
  }
  return otherwise;
}

/// Modules by name, with the place of their weight.
using Targets = std::vector<std::pair<std::string, ParameterIndex>>;

Result<Targets> find_targets(const ModelPlan& plan, const LoraConfig& config) {
  Targets all;
  std::vector<std::string> names;
  for (const ParameterIndex index : linear_layers(plan)) {
    std::string name = plan.parameters[static_cast<std::size_t>(index)].name;
    if (name.ends_with(kWeight)) name.resize(name.size() - kWeight.size());
    names.push_back(name);
    all.emplace_back(std::move(name), index);
  }
  const bool everything = config.target_modules == std::vector<std::string>{"all-linear"};
  for (const std::string& target : config.target_modules) {
    if (everything || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return is_named(name, {target});
        }))
      continue;
    return runtime::invalid_argument("LoRA: target_modules: the model has no linear layer " +
                                     target + " that an adapter can be applied to (" +
                                     endings(names) + " it has)");
  }
  std::optional<Pattern> pattern;
  if (!config.target_pattern.empty()) {
    Result<Pattern> compiled = Pattern::compile(config.target_pattern, "target_modules");
    if (!compiled.ok()) return compiled.status();
    pattern.emplace(std::move(*compiled));
  }
  Targets targets;
  for (auto& [name, index] : all) {
    const bool wanted =
        pattern ? pattern->matches(name) : everything || is_named(name, config.target_modules);
    const bool in_block = config.layers.empty() ||
                          std::find(config.layers.begin(), config.layers.end(), block_of(name)) !=
                              config.layers.end();
    if (wanted && in_block && !is_named(name, config.exclude_modules))
      targets.emplace_back(std::move(name), index);
  }
  if (targets.empty())
    return runtime::invalid_argument(
        "LoRA: what is targeted leaves no linear layer of the model (" + endings(names) +
        " it has)");
  return targets;
}

struct Plan {
  std::vector<LoraModule> modules;
  std::vector<FamilyParameter> parameters;  // an A and a B for each
};

Result<Plan> plan_adapter(const ModelConfig& model, const LoraConfig& config) {
  if (Status status = config.validate(); !status.ok()) return status;
  const ModelPlan plan = plan_of(model);
  Result<Targets> targets = find_targets(plan, config);
  if (!targets.ok()) return targets.status();
  Plan adapter;
  for (const auto& [name, index] : *targets) {
    const FamilyParameter& weight = plan.parameters[static_cast<std::size_t>(index)];
    const Result<std::int64_t> rank =
        by_pattern(config.rank_pattern, "rank_pattern", name, config.rank);
    const Result<double> alpha =
        by_pattern(config.alpha_pattern, "alpha_pattern", name, config.alpha);
    if (!rank.ok()) return rank.status();
    if (!alpha.ok()) return alpha.status();
    const double divisor =
        config.rank_stabilized ? std::sqrt(static_cast<double>(*rank)) : static_cast<double>(*rank);
    const std::string prefix = std::string(kPrefix) + name;
    adapter.modules.push_back({.weight = weight.name,
                               .a = prefix + ".lora_A.weight",
                               .b = prefix + ".lora_B.weight",
                               .scale = static_cast<float>(*alpha / divisor)});
    adapter.parameters.push_back(
        {.name = adapter.modules.back().a, .shape = {*rank, weight.shape[1]}});
    adapter.parameters.push_back({.name = adapter.modules.back().b,
                                  .shape = {weight.shape[0], *rank},
                                  .init = FamilyParameter::Init::kZeros});
  }
  return adapter;
}

Status check_tensors(const Parameters& parameters, const WeightSource& source) {
  TensorMismatches mismatches;
  for (const ParameterSpec& spec : parameters.specs()) {
    const TensorInfo* info = source.find(spec.name);
    if (info == nullptr)
      mismatches.missing.push_back(spec.name);
    else if (info->shape != spec.shape)
      mismatches.add_misshaped(spec.name, info->shape, spec.shape);
  }
  for (const TensorInfo& info : source.tensors()) {
    if (parameters.find(info.name) == nullptr) mismatches.unexpected.push_back(info.name);
  }
  return mismatches.status("the adapter does not fit the model");
}

}  // namespace

LoraAdapter::LoraAdapter(LoraConfig config, std::vector<LoraModule> modules, Parameters parameters)
    : config_(std::move(config)), modules_(std::move(modules)), parameters_(std::move(parameters)) {
  for (std::size_t i = 0; i < modules_.size(); ++i) by_weight_.emplace(modules_[i].weight, i);
}

Result<LoraAdapter> LoraAdapter::create(const ModelConfig& model, const LoraConfig& config,
                                        std::uint64_t seed) {
  Result<Plan> plan = plan_adapter(model, config);
  if (!plan.ok()) return plan.status();
  LoraAdapter adapter(config, std::move(plan->modules),
                      Parameters::zeros(arena_layout(std::move(plan->parameters))));
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const LoraModule& module : adapter.modules_) {
    at::Tensor a = adapter.parameters_.view(module.a);
    const double bound = 1.0 / std::sqrt(static_cast<double>(a.size(1)));
    a.uniform_(-bound, bound, generator);
  }
  return adapter;
}

Result<LoraAdapter> LoraAdapter::load(const ModelConfig& model,
                                      const std::filesystem::path& folder) {
  Result<LoraConfig> config = LoraConfig::load(folder);
  if (!config.ok()) return config.status();
  Result<Plan> plan = plan_adapter(model, *config);
  if (!plan.ok()) return plan.status().with_context(folder.string());
  LoraAdapter adapter(std::move(*config), std::move(plan->modules),
                      Parameters::zeros(arena_layout(std::move(plan->parameters))));
  std::error_code ignored;
  const bool is_pickled = !std::filesystem::exists(folder / kAdapterWeightsFile, ignored) &&
                          std::filesystem::exists(folder / kPickledFile, ignored);
  Result<std::unique_ptr<WeightSource>> source =
      open_weights(folder / (is_pickled ? kPickledFile : kAdapterWeightsFile));
  if (!source.ok()) return source.status();
  if (Status status = check_tensors(adapter.parameters_, **source); !status.ok())
    return status.with_context(folder.string());
  float* arena = adapter.parameters_.arena().mutable_data_ptr<float>();
  for (const ParameterSpec& spec : adapter.parameters_.specs()) {
    if (Status status = (*source)->read_f32(
            spec.name, std::span(arena + spec.offset, static_cast<std::size_t>(spec.count)));
        !status.ok())
      return status;
  }
  return adapter;
}

Status LoraAdapter::save(const std::filesystem::path& folder) const {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return runtime::errno_status(error.value(), "making " + folder.string());
  const at::Tensor host = parameters_.arena().cpu();
  std::vector<TensorView> tensors;
  for (const ParameterSpec& spec : parameters_.specs()) {
    tensors.push_back({spec.name, spec.shape,
                       std::span(host.const_data_ptr<float>() + spec.offset,
                                 static_cast<std::size_t>(spec.count))});
  }
  if (Status status = write_safetensors(folder / kAdapterWeightsFile, tensors, {{"format", "pt"}});
      !status.ok())
    return status;
  return write_file_atomically(folder / kAdapterConfigFile, config_.to_json().dump(2) + "\n");
}

std::vector<std::filesystem::path> LoraAdapter::files() {
  return {kAdapterConfigFile, kAdapterWeightsFile};
}

const LoraModule* LoraAdapter::module_of(const std::string& weight) const {
  const auto found = by_weight_.find(weight);
  return found == by_weight_.end() ? nullptr : &modules_[found->second];
}

void LoraAdapter::add_to(const Parameters& base, float share) const {
  for (const LoraModule& module : modules_)
    base.view(module.weight)
        .add_(at::mm(parameters_.view(module.b), parameters_.view(module.a)), module.scale * share);
}

}  // namespace rl
