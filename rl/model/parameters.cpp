#include "rl/model/parameters.h"

#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "rl/model/family.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::int64_t kAlignment = 16;   // elements: 64 bytes, a cache line and a vector register
constexpr std::size_t kNamedErrorsMax = 8;  // tensors listed in one message

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::int64_t aligned(std::int64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

std::int64_t arena_elements(std::span<const ParameterSpec> specs) {
  return specs.empty() ? 0 : aligned(specs.back().offset + specs.back().count);
}

// As a checkpoint has it.
std::vector<std::int64_t> stored_shape(const FamilyParameter& parameter) {
  return parameter.transposed ? std::vector<std::int64_t>(parameter.shape.rbegin(), parameter.shape.rend()) : parameter.shape;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

// "missing a, b and 12 more".
std::string listed(std::string_view what, const std::vector<std::string>& names) {
  std::string text(what);
  for (std::size_t i = 0; i < names.size() && i < kNamedErrorsMax; ++i) text += (i == 0 ? " " : ", ") + names[i];
  if (names.size() > kNamedErrorsMax) text += " and " + std::to_string(names.size() - kNamedErrorsMax) + " more";
  return text;
}

// What a source calls a parameter. Checkpoints of a model without its output layer, as GPT-2 and OPT were published, lack the first part
// of Hugging Face's names ("transformer.", "model."); Hugging Face adds it when it loads them, and so do we.
class StoredNames {
 public:
  StoredNames(const std::vector<FamilyParameter>& parameters, const WeightSource& source, bool gguf_names) : gguf_(gguf_names) {
    if (gguf_ || parameters.empty()) return;
    const std::string_view first = parameters.front().name;
    const std::size_t dot = first.find('.');
    if (dot != first.npos && source.find(first) == nullptr && source.find(first.substr(dot + 1)) != nullptr) without_ = first.substr(0, dot + 1);
  }

  std::string of(const FamilyParameter& parameter) const {
    if (gguf_) return parameter.gguf_name;
    return parameter.name.starts_with(without_) ? parameter.name.substr(without_.size()) : parameter.name;
  }

  // The reverse of of(), for names that may be no parameter's.
  std::string full(const std::string& stored) const { return without_ + stored; }

 private:
  bool gguf_;
  std::string without_;
};

// Everything that does not fit, so that one run tells all.
Status check_tensors(const ModelConfig& config, const std::vector<FamilyParameter>& parameters, const WeightSource& source,
                     const StoredNames& names) {
  std::vector<std::string> missing, misshaped, surplus;
  std::set<std::string, std::less<>> expected;
  for (const FamilyParameter& parameter : parameters) {
    const std::string name = names.of(parameter);
    expected.insert(name);
    const TensorInfo* info = source.find(name);
    const std::vector<std::int64_t> shape = stored_shape(parameter);
    if (info == nullptr) {
      missing.push_back(name.empty() ? parameter.name : name);
    } else if (info->shape != shape) {
      misshaped.push_back(name + " " + shape_text(info->shape) + " instead of " + shape_text(shape));
    }
  }
  const Family& family = family_of(config);
  for (const TensorInfo& info : source.tensors()) {
    if (!expected.contains(info.name) && !family.ignorable(config, info.name) && !family.ignorable(config, names.full(info.name))) surplus.push_back(info.name);
  }
  std::string message;
  for (const auto& [what, found] : {std::pair("missing", &missing), {"of the wrong shape", &misshaped}, {"unexpected", &surplus}}) {
    if (!found->empty()) message += (message.empty() ? "" : "; ") + listed(what, *found);
  }
  if (message.empty()) return {};
  return runtime::invalid_argument("weights do not fit the " + config.family + " config: " + message);
}

// llama.cpp stores the rows of each query and key head as (0, half, 1, half + 1, ...); Hugging Face has the halves apart.
void unpermute_heads(std::span<float> weight, std::int64_t heads, std::int64_t columns) {
  const std::int64_t head_rows = static_cast<std::int64_t>(weight.size()) / columns / heads;
  const std::int64_t half = head_rows / 2;
  std::vector<float> head(static_cast<std::size_t>(head_rows * columns));
  for (std::int64_t h = 0; h < heads; ++h) {
    float* rows = weight.data() + h * head_rows * columns;
    std::copy_n(rows, head.size(), head.begin());
    for (std::int64_t i = 0; i < head_rows; ++i) {
      const std::int64_t from = i < half ? 2 * i : 2 * (i - half) + 1;
      std::copy_n(head.data() + from * columns, columns, rows + i * columns);
    }
  }
}

Status read_transposed(const FamilyParameter& parameter, const std::string& name, const WeightSource& source, std::span<float> out) {
  const std::int64_t rows = parameter.shape[0];
  const std::int64_t columns = parameter.shape[1];
  std::vector<float> stored(out.size());
  if (Status status = source.read_f32(name, stored); !status.ok()) return status;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) out[static_cast<std::size_t>(r * columns + c)] = stored[static_cast<std::size_t>(c * rows + r)];
  }
  return {};
}

Status read_parameter(const ModelConfig& config, const FamilyParameter& parameter, const std::string& name, const WeightSource& source,
                      bool gguf_names, std::span<float> out) {
  if (parameter.transposed) return read_transposed(parameter, name, source, out);
  const Status status = source.read_f32(name, out);
  if (!status.ok() || !gguf_names) return status;
  if (parameter.gguf_rows == GgufRows::kUnpermuteQueries) unpermute_heads(out, config.heads, parameter.shape.back());
  if (parameter.gguf_rows == GgufRows::kUnpermuteKeys) unpermute_heads(out, config.kv_heads, parameter.shape.back());
  return {};
}

Result<at::Tensor> allocate(std::int64_t elements) {
  try {
    return at::empty({elements});
  } catch (const std::exception&) {
    return runtime::resource_exhausted("no memory for " + std::to_string(elements >> 18) + " MiB of weights");
  }
}

// The holes that alignment leaves: zero, so that norms, checksums and optimizers may run over the whole arena.
void zero_gaps(std::span<const ParameterSpec> specs, std::span<float> arena) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::int64_t end = specs[i].offset + specs[i].count;
    const std::int64_t next = i + 1 < specs.size() ? specs[i + 1].offset : static_cast<std::int64_t>(arena.size());
    std::fill(arena.begin() + end, arena.begin() + next, 0.0F);
  }
}

}  // namespace

std::vector<ParameterSpec> parameter_layout(const ModelConfig& config) {
  std::vector<ParameterSpec> specs;
  std::int64_t offset = 0;
  for (FamilyParameter& parameter : plan_of(config).parameters) {
    const std::int64_t count = product(parameter.shape);
    specs.push_back({.name = std::move(parameter.name),
                     .shape = std::move(parameter.shape),
                     .offset = offset,
                     .count = count,
                     .transposed = parameter.transposed,
                     .frozen = parameter.frozen,
                     .init = parameter.init});
    offset = aligned(offset + count);
  }
  return specs;
}

Parameters::Parameters(std::vector<ParameterSpec> specs, at::Tensor arena) : specs_(std::move(specs)), arena_(std::move(arena)) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    count_ += specs_[i].count;
    index_.emplace(specs_[i].name, i);
  }
}

Result<Parameters> Parameters::load(const ModelConfig& config, const std::filesystem::path& model) {
  auto source = open_weights(model);
  if (!source.ok()) return source.status();
  Result<Parameters> parameters = load(config, **source, model.extension() == ".gguf");
  if (!parameters.ok()) return parameters.status().with_context(model.string());
  return parameters;
}

Result<Parameters> Parameters::load(const ModelConfig& config, const WeightSource& source, bool gguf_names) {
  const std::vector<FamilyParameter> wanted = plan_of(config).parameters;
  const StoredNames names(wanted, source, gguf_names);
  if (Status status = check_tensors(config, wanted, source, names); !status.ok()) return status;
  std::vector<ParameterSpec> specs = parameter_layout(config);
  Result<at::Tensor> arena = allocate(arena_elements(specs));
  if (!arena.ok()) return arena.status();
  const std::span<float> elements(arena->mutable_data_ptr<float>(), static_cast<std::size_t>(arena->numel()));
  zero_gaps(specs, elements);

  // Threads take the next tensor as they get free: sizes differ too much for equal shares.
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status first_error;
  const int threads = at::get_num_threads();
  at::parallel_for(0, threads, 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t i = next++; i < wanted.size(); i = next++) {
      const auto out = elements.subspan(static_cast<std::size_t>(specs[i].offset), static_cast<std::size_t>(specs[i].count));
      Status status = read_parameter(config, wanted[i], names.of(wanted[i]), source, gguf_names, out);
      std::lock_guard lock(mutex);
      if (first_error.ok() && !status.ok()) first_error = std::move(status);
    }
  });
  if (!first_error.ok()) return first_error;
  return Parameters(std::move(specs), std::move(*arena));
}

Parameters Parameters::random(const ModelConfig& config, std::uint64_t seed) {
  Parameters parameters = zeros(config);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const ParameterSpec& spec : parameters.specs()) {
    at::Tensor view = parameters.view(spec);
    switch (spec.init) {
      case FamilyParameter::Init::kOnes: view.fill_(1.0); break;
      case FamilyParameter::Init::kZeros: break;
      case FamilyParameter::Init::kNormal: view.normal_(0.0, config.initializer_range, generator); break;
    }
  }
  return parameters;
}

Parameters Parameters::zeros(const ModelConfig& config) {
  std::vector<ParameterSpec> specs = parameter_layout(config);
  const std::int64_t elements = arena_elements(specs);
  return Parameters(std::move(specs), at::zeros({elements}));
}

Parameters Parameters::clone() const { return Parameters(specs_, arena_.clone()); }

Parameters Parameters::to(at::Device device) const {
  return Parameters(specs_, arena_.to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true));
}

const ParameterSpec* Parameters::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &specs_[found->second];
}

at::Tensor Parameters::view(std::string_view name) const {
  const ParameterSpec* spec = find(name);
  CHECK(spec != nullptr);
  return view(*spec);
}

at::Tensor Parameters::view(const ParameterSpec& spec) const {
  return arena_.narrow(0, spec.offset, spec.count).view(spec.shape);
}

const float* Parameters::data(std::string_view name) const {
  const ParameterSpec* spec = find(name);
  CHECK(spec != nullptr);
  return arena_.const_data_ptr<float>() + spec->offset;
}

}  // namespace rl
