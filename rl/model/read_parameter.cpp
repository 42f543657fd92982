#include "rl/model/read_parameter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "rl/model/family.h"
#include "rl/model/tensor_mismatches.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Status;

// As a checkpoint has it.
std::vector<std::int64_t> stored_shape(const FamilyParameter& parameter) {
  return parameter.transposed
             ? std::vector<std::int64_t>(parameter.shape.rbegin(), parameter.shape.rend())
             : parameter.shape;
}

// llama.cpp stores the rows of each query and key head as (0, half, 1, half + 1, ...); Hugging Face
// has the halves apart.
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

// [columns, rows] to [rows, columns], in squares that stay in the cache.
void transpose(std::span<const float> from, std::int64_t rows, std::int64_t columns,
               std::span<float> to) {
  constexpr std::int64_t kSide = 32;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kSide) {
    for (std::int64_t c0 = 0; c0 < columns; c0 += kSide) {
      for (std::int64_t r = r0; r < std::min(rows, r0 + kSide); ++r) {
        for (std::int64_t c = c0; c < std::min(columns, c0 + kSide); ++c)
          to[static_cast<std::size_t>(r * columns + c)] =
              from[static_cast<std::size_t>(c * rows + r)];
      }
    }
  }
}

}  // namespace

// Checkpoints of a model without its output layer, as GPT-2 and OPT were published, lack the first
// part of Hugging Face's names ("transformer.", "model."). Hugging Face adds it when it loads them,
// and so do we.
ParameterReader::ParameterReader(const ModelConfig& config, const ModelPlan& plan,
                                 const WeightSource& source, bool gguf_names)
    : config_(config), plan_(plan), source_(source), gguf_(gguf_names) {
  if (plan.parameters.empty()) return;
  const std::string_view first = plan.parameters.front().name;
  const std::size_t dot = first.find('.');
  if (!gguf_ && dot != first.npos && source.find(first) == nullptr &&
      source.find(first.substr(dot + 1)) != nullptr)
    without_ = first.substr(0, dot + 1);
  if (!config.tie_word_embeddings || plan.embedding == kNoParameter ||
      source.find(stored_name(plan.parameters[static_cast<std::size_t>(plan.embedding)])) !=
          nullptr)
    return;
  for (const std::string_view name : output_layer_names()) {
    if (source.find(name) != nullptr) tied_ = name;
  }
}

std::string ParameterReader::stored_name(const FamilyParameter& parameter) const {
  if (!tied_.empty() &&
      parameter.name == plan_.parameters[static_cast<std::size_t>(plan_.embedding)].name)
    return tied_;
  if (gguf_) return parameter.gguf_name;
  return parameter.name.starts_with(without_) ? parameter.name.substr(without_.size())
                                              : parameter.name;
}

bool ParameterReader::is_there(const FamilyParameter& parameter) const {
  return source_.find(stored_name(parameter)) != nullptr;
}

// Everything that does not fit, so that one run tells all.
Status ParameterReader::check(bool heads_may_lack) const {
  TensorMismatches mismatches;
  std::set<std::string, std::less<>> expected(plan_.unused.begin(), plan_.unused.end());
  for (const FamilyParameter& parameter : plan_.parameters) {
    const std::string name = stored_name(parameter);
    expected.insert(name);
    const TensorInfo* info = source_.find(name);
    const std::vector<std::int64_t> shape = stored_shape(parameter);
    if (info == nullptr) {
      if (parameter.of_head && heads_may_lack) continue;
      mismatches.missing.push_back(name.empty() ? parameter.name : name);
    } else if (info->shape != shape) {
      mismatches.add_misshaped(name, info->shape, shape);
    }
  }
  const Family& family = family_of(config_);
  for (const TensorInfo& info : source_.tensors()) {
    if (!expected.contains(info.name) && !family.ignorable(config_, info.name) &&
        !family.ignorable(config_, without_ + info.name))
      mismatches.unexpected.push_back(info.name);
  }
  return mismatches.status("weights do not fit the " + config_.family + " config");
}

bool ParameterReader::lies_alike(const FamilyParameter& parameter) const {
  return !parameter.transposed && rows_together(parameter) == 1;
}

std::int64_t ParameterReader::unit(const FamilyParameter& parameter) const {
  const TensorInfo* info = source_.find(stored_name(parameter));
  CHECK(info != nullptr);
  return dtype_block(info->dtype).elements;
}

std::int64_t ParameterReader::rows_together(const FamilyParameter& parameter) const {
  if (!gguf_ || parameter.gguf_rows == GgufRows::kSame) return 1;
  return parameter.shape.front() /
         (parameter.gguf_rows == GgufRows::kUnpermuteQueries ? config_.heads : config_.kv_heads);
}

Status ParameterReader::read_range(const FamilyParameter& parameter, std::int64_t first,
                                   std::span<float> out) const {
  CHECK(lies_alike(parameter));
  return source_.read_f32_range(stored_name(parameter), first, out);
}

Status ParameterReader::read_whole(const FamilyParameter& parameter, std::span<float> out) const {
  const std::int64_t rows = parameter.shape.empty() ? 1 : parameter.shape.front();
  const std::int64_t columns = static_cast<std::int64_t>(out.size()) / rows;
  std::vector<float> turned(parameter.transposed ? out.size() : 0);
  const std::span<float> into = parameter.transposed ? std::span(turned) : out;
  if (Status status = source_.read_f32(stored_name(parameter), into); !status.ok()) return status;
  if (const std::int64_t together = rows_together(parameter); together > 1)
    unpermute_heads(out, rows / together, columns);
  if (parameter.transposed) transpose(turned, rows, columns, out);
  return {};
}

}  // namespace rl
