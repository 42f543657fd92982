#include "rl/model/parameters.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rl/mesh/range_pieces.h"
#include "rl/model/device_arena.h"
#include "rl/model/family.h"
#include "rl/model/guarded.h"
#include "rl/model/read_parameter.h"
#include "rl/weights/piece_reader.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

Result<at::Tensor> allocate(std::int64_t elements) {
  try {
    // Not of large pages. They halve the time of a load where memory is free in one piece, and
    // quadruple it where the kernel first has to make room.
    return at::empty({elements});
  } catch (const std::exception&) {
    return runtime::resource_exhausted("no memory for " + std::to_string(elements >> 18) +
                                       " MiB of weights");
  }
}

// Zeros that take memory when they are written, page by page.
at::Tensor zeros_of(std::int64_t elements) {
  const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
  void* const memory = bytes == 0 ? MAP_FAILED
                                  : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return at::zeros({elements});  // or says that there is no memory
  return at::from_blob(memory, {elements}, [bytes](void* begin) { ::munmap(begin, bytes); });
}

// A part of a parameter that one thread reads.
struct Piece {
  std::size_t parameter = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// What of a stretch of a parameter that begins at `offset` is among `only`, in whole units.
RangeSet wanted_of(const ArenaRange& piece, std::int64_t offset, std::int64_t unit,
                   const std::optional<RangeSet>& only) {
  if (!only) return {piece};
  const RangeSet inside = only->intersected({{offset + piece.begin, offset + piece.end}});
  std::vector<ArenaRange> whole;
  for (const ArenaRange& range : inside.ranges())
    whole.push_back({(range.begin - offset) / unit * unit,
                     std::min(rounded_up(range.end - offset, unit), piece.end)});
  return RangeSet(std::move(whole));
}

// Parameters that are stored as they lie here, in pieces of a size that keeps threads even.
std::vector<Piece> cut_into_pieces(const std::vector<FamilyParameter>& parameters,
                                   std::span<const ParameterSpec> specs,
                                   const ParameterReader& reader,
                                   const std::optional<RangeSet>& only) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool alike = reader.lies_alike(parameters[i]);
    const std::int64_t size = alike ? kReadElements : specs[i].count;
    for (std::int64_t first = 0; first < specs[i].count; first += size) {
      const ArenaRange piece{first, std::min(first + size, specs[i].count)};
      const bool cuts = alike && reader.is_there(parameters[i]);
      const std::int64_t unit = cuts ? reader.unit(parameters[i]) : specs[i].count;
      const RangeSet wanted = wanted_of(piece, specs[i].offset, unit, only);
      for (const ArenaRange& part : wanted.ranges()) pieces.push_back({i, part.begin, part.size()});
    }
  }
  return pieces;
}

// The holes that alignment leaves: zero, so that norms, checksums and optimizers may run over the
// whole arena.
void zero_gaps(std::span<const ParameterSpec> specs, std::span<float> arena) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::int64_t end = specs[i].offset + specs[i].count;
    const std::int64_t next =
        i + 1 < specs.size() ? specs[i + 1].offset : static_cast<std::int64_t>(arena.size());
    std::fill(arena.begin() + end, arena.begin() + next, 0.0F);
  }
}

// A file may hold the output layer that its config says is the embedding. Where it is another,
// neither is what was meant.
Status check_tied(const ModelConfig& config, const WeightSource& source,
                  const Parameters& parameters, const std::optional<RangeSet>& only) {
  if (!config.tie_word_embeddings) return {};
  for (const std::string_view name : output_layer_names()) {
    const TensorInfo* info = source.find(name);
    if (info == nullptr || parameters.specs().empty() ||
        info->shape != parameters.specs().front().shape)
      continue;
    const ParameterSpec& embedding = parameters.specs().front();
    std::vector<float> stored;
    RangeSet there{{0, embedding.count}};
    if (only) there = there.intersected(*only);
    for (const ArenaRange& piece : in_pieces(there, kReadElements)) {
      stored.resize(static_cast<std::size_t>(piece.size()));
      const bool whole = std::ssize(stored) == embedding.count;
      if (Status status = whole ? source.read_f32(name, stored)
                                : source.read_f32_range(name, piece.begin, stored);
          !status.ok())
        return status;
      if (std::memcmp(stored.data(), parameters.data(embedding.name) + piece.begin,
                      stored.size() * sizeof(float)) == 0)
        continue;
      return runtime::invalid_argument(std::string(name) +
                                       " differs from the embedding, though tie_word_embeddings is "
                                       "true: set it to false to use both, or take the tensor out");
    }
  }
  return {};
}

void initialise(at::Tensor view, FamilyParameter::Init init, double range,
                const at::Generator& generator) {
  switch (init) {
    case FamilyParameter::Init::kOnes: view.fill_(1.0); break;
    case FamilyParameter::Init::kZeros: view.zero_(); break;
    case FamilyParameter::Init::kNormal: view.normal_(0.0, range, generator); break;
  }
}

}  // namespace

std::vector<ParameterSpec> parameter_layout(const ModelConfig& config) {
  return arena_layout(plan_of(config).parameters);
}

std::vector<ParameterSpec> arena_layout(std::vector<FamilyParameter> parameters) {
  std::vector<ParameterSpec> specs;
  std::int64_t offset = 0;
  for (FamilyParameter& parameter : parameters) {
    const std::int64_t count = product(parameter.shape);
    specs.push_back({.name = std::move(parameter.name),
                     .shape = std::move(parameter.shape),
                     .offset = offset,
                     .count = count,
                     .transposed = parameter.transposed,
                     .frozen = parameter.frozen,
                     .saved_fp32 = parameter.saved_fp32,
                     .init = parameter.init});
    offset = rounded_up(offset + count);
  }
  return specs;
}

std::int64_t arena_elements(std::span<const ParameterSpec> specs) {
  return specs.empty() ? 0 : rounded_up(specs.back().offset + specs.back().count);
}

Status check_weights(const ModelConfig& config, const WeightSource& source, bool gguf_names) {
  const ModelPlan plan = plan_of(config);
  return ParameterReader(config, plan, source, gguf_names).check();
}

Parameters::Parameters(std::vector<ParameterSpec> specs, at::Tensor arena)
    : specs_(std::move(specs)), arena_(std::move(arena)) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    count_ += specs_[i].count;
    index_.emplace(specs_[i].name, i);
  }
}

Result<Parameters> Parameters::load(const ModelConfig& config, const std::filesystem::path& model,
                                    const LoadOptions& options) {
  // Of a part: one that no other process of this machine reads.
  auto source = open_weights(
      model, options.only ? WeightReading::kPastPageCache : WeightReading::kThroughPageCache);
  if (!source.ok()) return source.status();
  Result<Parameters> parameters = load(config, **source, model.extension() == ".gguf", options);
  if (!parameters.ok()) return parameters.status().with_context(model.string());
  return parameters;
}

Result<Parameters> Parameters::load(const ModelConfig& config, const WeightSource& source,
                                    bool gguf_names, const LoadOptions& options) {
  const ModelPlan plan = plan_of(config);
  const std::vector<FamilyParameter>& wanted = plan.parameters;
  const ParameterReader reader(config, plan, source, gguf_names);
  if (Status status = reader.check(/*heads_may_lack=*/options.head_seed.has_value()); !status.ok())
    return status;
  std::vector<ParameterSpec> specs = parameter_layout(config);
  Result<at::Tensor> arena = allocate(arena_elements(specs));
  if (!arena.ok()) return arena.status();
  const std::span<float> elements(arena->mutable_data_ptr<float>(),
                                  static_cast<std::size_t>(arena->numel()));
  zero_gaps(specs, elements);

  const std::vector<Piece> pieces = cut_into_pieces(wanted, specs, reader, options.only);
  // Not at::parallel_for, which is a loop where OpenMP is not compiled in. One more than there is
  // work for, since they wait for the disk.
  const Status read = read_pieces(
      pieces.size(), static_cast<std::size_t>(at::get_num_threads()), [&](std::size_t i) -> Status {
        const Piece& piece = pieces[i];
        const ParameterSpec& spec = specs[piece.parameter];
        const FamilyParameter& parameter = wanted[piece.parameter];
        if (!reader.is_there(parameter)) return {};  // a head: below
        const auto out = elements.subspan(static_cast<std::size_t>(spec.offset + piece.first),
                                          static_cast<std::size_t>(piece.count));
        return piece.count < spec.count ? reader.read_range(parameter, piece.first, out)
                                        : reader.read_whole(parameter, out);
      });
  if (!read.ok()) return read;
  Parameters parameters(std::move(specs), std::move(*arena));
  if (Status status = check_tied(config, source, parameters, options.only); !status.ok())
    return status;
  if (options.head_seed) {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(*options.head_seed);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i].of_head || reader.is_there(wanted[i])) continue;
      initialise(parameters.view(parameters.specs()[i]), wanted[i].init, config.initializer_range,
                 generator);
    }
  }
  return parameters;
}

Parameters Parameters::random(const ModelConfig& config, std::uint64_t seed) {
  Parameters parameters = zeros(config);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const ParameterSpec& spec : parameters.specs()) {
    initialise(parameters.view(spec), spec.init, config.initializer_range, generator);
  }
  return parameters;
}

Parameters Parameters::zeros(const ModelConfig& config) { return zeros(parameter_layout(config)); }

Parameters Parameters::zeros(std::vector<ParameterSpec> layout) {
  const std::int64_t elements = arena_elements(layout);
  return Parameters(std::move(layout), zeros_of(elements));
}

Parameters Parameters::in_arena(std::vector<ParameterSpec> layout, at::Tensor arena) {
  CHECK(arena.numel() == arena_elements(layout) && arena.is_contiguous());
  return Parameters(std::move(layout), std::move(arena));
}

Parameters Parameters::clone() const { return Parameters(specs_, arena_.clone()); }

Parameters Parameters::to(at::Device device) const {
  return Parameters(specs_, arena_.to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true));
}

Result<Parameters> Parameters::to_pages(at::Device device, const RangeSet& part) const {
  Result<std::shared_ptr<DeviceArena>> pages =
      DeviceArena::make(device, arena_.numel(), part.intersected({{0, arena_.numel()}}));
  if (!pages.ok()) return pages.status();
  return guarded<Parameters>("weights on their way to " + device.str(), [&] {
    for (const ArenaRange& range : part.ranges())
      (*pages)
          ->elements()
          .narrow(0, range.begin, range.size())
          .copy_(arena_.narrow(0, range.begin, range.size()));
    Parameters there(specs_, (*pages)->tensor());
    there.pages_ = *std::move(pages);
    return there;
  });
}

Result<Parameters> Parameters::in_pages(std::vector<ParameterSpec> layout, at::Device device) {
  Result<std::shared_ptr<DeviceArena>> pages =
      DeviceArena::make(device, arena_elements(layout), {});
  if (!pages.ok()) return pages.status();
  Parameters there(std::move(layout), (*pages)->tensor());
  there.pages_ = *std::move(pages);
  return there;
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
