#include "rl/model/parameter_shard.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>

#include "rl/model/family.h"
#include "rl/model/read_parameter.h"
#include "rl/model/tensor_span.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// Elements [first, last) of a parameter into `out`, through the smallest stretch around them that
// can be read alone.
Status read_stretch(const ParameterReader& reader, const FamilyParameter& parameter,
                    std::int64_t count, std::int64_t first, std::int64_t last,
                    std::span<float> out) {
  std::int64_t begin, end;
  std::vector<float> around;
  Status status;
  if (reader.lies_alike(parameter)) {
    const std::int64_t unit = reader.unit(parameter);
    begin = first / unit * unit;
    end = std::min(count, rounded_up(last, unit));
    if (begin == first && end == last) return reader.read_range(parameter, first, out);
    around.resize(static_cast<std::size_t>(end - begin));
    status = reader.read_range(parameter, begin, around);
  } else {
    ParameterPart part = ParameterReader::whole(parameter);
    const std::int64_t step = reader.rows_together(parameter) * part.columns;
    begin = first / step * step;
    end = std::min(count, rounded_up(last, step));
    part.row = begin / part.columns;
    part.rows = (end - begin) / part.columns;
    around.resize(static_cast<std::size_t>(end - begin));
    status = reader.read_part(parameter, part, around);
  }
  if (status.ok()) std::copy_n(around.begin() + (first - begin), last - first, out.begin());
  return status;
}

}  // namespace

ArenaRange arena_shard(std::int64_t elements, ShardRank shard) {
  CHECK(shard.world > 0);
  CHECK(shard.rank >= 0 && shard.rank < shard.world);
  const std::int64_t each = rounded_up((elements + shard.world - 1) / shard.world);
  const std::int64_t begin = std::min(elements, shard.rank * each);
  return {begin, std::min(elements, begin + each)};
}

Result<at::Tensor> load_arena_range(const ModelConfig& config, const WeightSource& source,
                                    bool gguf_names, ArenaRange range) {
  const ModelPlan plan = plan_of(config);
  const std::vector<FamilyParameter>& parameters = plan.parameters;
  const ParameterReader reader(config, plan, source, gguf_names);
  if (Status status = reader.check(); !status.ok()) return status;
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  const std::int64_t elements_max = arena_elements(specs);
  if (range.begin < 0 || range.begin > range.end || range.end > elements_max) {
    return runtime::invalid_argument("elements [" + std::to_string(range.begin) + ", " +
                                     std::to_string(range.end) + ") of an arena of " +
                                     std::to_string(elements_max));
  }
  at::Tensor shard = at::zeros({range.size()});
  const std::span<float> elements = elements_of(shard);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::int64_t first = std::max(specs[i].offset, range.begin);
    const std::int64_t last = std::min(specs[i].offset + specs[i].count, range.end);
    if (first >= last) continue;
    const auto out = elements.subspan(static_cast<std::size_t>(first - range.begin),
                                      static_cast<std::size_t>(last - first));
    const Status status = read_stretch(reader, parameters[i], specs[i].count,
                                       first - specs[i].offset, last - specs[i].offset, out);
    if (!status.ok()) return status;
  }
  return shard;
}

Result<std::vector<at::Tensor>> load_tensor_parallel(const ModelConfig& config,
                                                     const WeightSource& source, bool gguf_names,
                                                     ShardRank shard, const SplitRule& rule) {
  CHECK(shard.world > 0);
  CHECK(shard.rank >= 0 && shard.rank < shard.world);
  const ModelPlan plan = plan_of(config);
  const std::vector<FamilyParameter>& parameters = plan.parameters;
  const ParameterReader reader(config, plan, source, gguf_names);
  if (Status status = reader.check(); !status.ok()) return status;
  const std::vector<ParameterSpec> specs = parameter_layout(config);
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    ParameterPart part = ParameterReader::whole(parameters[i]);
    std::vector<std::int64_t> shape = specs[i].shape;
    const SplitBy split = rule(specs[i]);
    if (split != SplitBy::kNothing) {
      const bool rows = split == SplitBy::kRows;
      std::int64_t& size = rows ? part.rows : part.columns;
      if (size % shard.world != 0 || (!rows && shape.size() != 2)) {
        return runtime::invalid_argument(
            specs[i].name + ": its " + std::to_string(size) + (rows ? " rows" : " columns") +
            " cannot be split between " + std::to_string(shard.world) + " ranks");
      }
      size /= shard.world;
      (rows ? part.row : part.column) = shard.rank * size;
      (rows ? shape.front() : shape.back()) = size;
    }
    tensors.push_back(at::empty(shape));
    const Status status = reader.read_part(parameters[i], part, elements_of(tensors.back()));
    if (!status.ok()) return status;
  }
  return tensors;
}

}  // namespace rl
