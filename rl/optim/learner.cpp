#include "rl/optim/learner.h"

#include <xxhash.h>

#include <ATen/Parallel.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "rl/checkpoint/checkpoint.h"
#include "rl/mesh/pass_streaming.h"
#include "rl/mesh/range_pieces.h"
#include "rl/model/family.h"
#include "rl/model/guarded.h"
#include "rl/model/pass_parts.h"
#include "rl/model/tensor_span.h"
#include "rl/optim/hidden_matrices.h"
#include "rl/optim/matrix_exchange.h"
#include "rl/optim/muon.h"
#include "rl/optim/shared_folder.h"
#include "rl/profile/recorder.h"
#include "rl/weights/piece_reader.h"
#include "rl/weights/safetensors.h"
#include "rl/weights/weight_source.h"
#include "runtime/core/check.h"
#include "runtime/core/log.h"

namespace rl {
using runtime::Result;
using runtime::Status;

Result<OptimizerKind> parse_optimizer(std::string_view name) {
  if (name == "AdamW" || name == "adam")
    return OptimizerKind::kAdamW;  // the small ones are Megatron's, whose adam decays weights as
                                   // AdamW does
  if (name == "SGD" || name == "sgd") return OptimizerKind::kSgd;
  if (name == "Muon" || name == "muon") return OptimizerKind::kMuon;
  return runtime::invalid_argument("no optimizer '" + std::string(name) +
                                   "': use AdamW, SGD or Muon");
}

std::vector<ArenaRange> decayed_ranges(std::span<const ParameterSpec> specs, bool with_norms) {
  std::vector<ArenaRange> ranges;
  for (const ParameterSpec& spec : specs) {
    if ((spec.shape.size() < 2 && !with_norms) || spec.frozen) continue;
    const ArenaRange range{spec.offset, spec.offset + spec.count};
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

namespace {

// This many neighbouring ranks keep the weights once; see UnitWeightsOptions.
int group_of(const LearnerOptions& options, int ranks) {
  const bool grouped = options.zero == ZeroLevel::kWeights && options.shard_ranks > 0;
  return grouped ? static_cast<int>(options.shard_ranks) : ranks;
}

}  // namespace

std::function<RangeSet(const ModelConfig&)> weights_needed(const LearnerOptions& options,
                                                           const TrainingRanks& group) {
  const bool reads_part = group.team && options.sharing.cuts_weights();
  if ((options.zero != ZeroLevel::kWeights && !reads_part) || group.all->size() == 1)
    return nullptr;
  const bool keeps_used = options.zero != ZeroLevel::kWeights;
  return [rank = group.all->rank(), ranks = group.all->size(),
          neighbours = group_of(options, group.all->size()), keeps_used,
          position = group.team ? static_cast<std::size_t>(group.team->rank()) : 0,
          sharing = group.team ? options.sharing : PassSharing()](const ModelConfig& config) {
    const std::vector<ParameterSpec> specs = parameter_layout(config);
    const std::vector<RangeSet> homes =
        homes_of(arena_units(config, specs), arena_elements(specs), ranks, neighbours);
    const RangeSet home = group_homes(homes, neighbours)[static_cast<std::size_t>(rank)];
    if (!keeps_used) return home;
    return home.united(pass_parts(config, specs, sharing).used[position]);
  };
}

Learner::Learner(std::unique_ptr<Transformer> model, TrainingRanks ranks,
                 const LearnerOptions& options)
    : model_(std::move(model)),
      communicator_(std::move(ranks.all)),
      ranks_(*communicator_),
      layer_pulse_(*communicator_),
      options_(options) {
  if (communicator_->size() == 1) options_.zero = ZeroLevel::kNone;
  if (options_.compression.is_on()) {
    CHECK(options_.zero <= ZeroLevel::kMoments);
    CHECK(ranks.team == nullptr);
  }
  if (ranks.team) {
    team_.emplace(*communicator_, ranks, options_.sharing,
                  streams_passes(options_.sharing, options_.zero));
    CHECK(model_->share_passes(team_->team()).ok());
    options_.zero = std::max(options_.zero, ZeroLevel::kGradients);
  }
  model_->tell(layer_pulse_);
  const bool by_units = has_unit_shards();
  model_->enable_gradients(by_units ? GradientMemory::kByPages : GradientMemory::kWhole);
  keep_weights_on_host();
  shards_ = make_shards();
  all_ = PackedRanges({{0, model_->trained_parameters().arena_size()}});
  if (host_weights_.defined() && !by_units) host_gradients_ = at::empty_like(host_weights_);
  reset_optimizer();
  begin_step();
  if (weights_are_sharded()) unit_weights_->scatter();
  offload_ = std::make_unique<Offload>(*model_, what_leaves(),
                                       adapter() == nullptr ? host_weights_ : at::Tensor());
}

// Operations of all ranks alone say who is behind: teams do not make the same ones.
Pulse Learner::pulse() const {
  Pulse pulse = communicator_->pulse();
  if (team_) team_->add_to(pulse);
  return pulse;
}

Learner::~Learner() { model_->stop_telling(layer_pulse_); }

// Whether gradients are added up by units: not those of an adapter, which is small.
bool Learner::has_unit_shards() const {
  return options_.zero >= ZeroLevel::kGradients && adapter() == nullptr;
}

// Of what is on a device and does not leave it for its ranks' parts.
void Learner::keep_weights_on_host() {
  const at::Tensor& arena = model_->trained_parameters().arena();
  const bool is_whole = adapter() != nullptr || options_.zero < ZeroLevel::kWeights;
  if (!arena.device().is_cpu() && is_whole) host_weights_ = arena.to(at::kCPU);
}

// What comes by units has left its device between passes.
OffloadOptions Learner::what_leaves() const {
  OffloadOptions leaves = options_.offload;
  if (weights_are_sharded()) leaves.parameters = false;
  if (shards_->sums_in_passes()) leaves.gradients = false;
  return leaves;
}

// Next to an adapter only the weights that it stands next to are kept by units.
std::unique_ptr<StepShards> Learner::make_shards() {
  const ZeroLevel level = options_.zero;
  const bool reads_part = team_ && options_.sharing.cuts_weights();
  const bool by_units = level == ZeroLevel::kWeights ||
                        (level == ZeroLevel::kGradients && (adapter() == nullptr || reads_part));
  std::unique_ptr<StepShards> shards = by_units ? make_unit_shards(level) : nullptr;
  if (shards) return shards;
  return std::make_unique<OptimizerShards>(
      *communicator_, model_->trained_parameters().arena_size(),
      std::min(level, ZeroLevel::kMoments), options_.compression);
}

std::unique_ptr<StepShards> Learner::make_unit_shards(ZeroLevel level) {
  const std::vector<ArenaUnit> units = arena_units(model_->config(), model_->parameters().specs());
  const int group = group_of(options_, communicator_->size());
  const std::vector<RangeSet> homes =
      homes_of(units, model_->parameters().arena_size(), communicator_->size(), group);
  UnitWeightsOptions weights{.stays = level == ZeroLevel::kGradients,
                             .reshard_after_forward = options_.reshard_after_forward,
                             .shard_ranks = group};
  if (weights.stays) weights.host_copy = host_weights_;
  TeamParts teams;
  if (team_) {
    const std::span<const ParameterSpec> specs = model_->parameters().specs();
    PassParts parts = pass_parts(model_->config(), specs, team_->team().sharing());
    teams.differentiated = std::move(parts.differentiated);
    const int count = communicator_->size() / team_->team().size();
    for (int rank = 0; options_.sharing.cuts_weights() && rank < communicator_->size(); ++rank)
      weights.used.push_back(parts.used[static_cast<std::size_t>(rank / count)]);
  }
  unit_weights_ = std::make_unique<UnitWeights>(*communicator_, *model_, units, homes, weights);
  if (adapter() != nullptr) return nullptr;
  return std::make_unique<UnitShards>(*communicator_, *model_, *unit_weights_, units, homes, teams);
}

Result<Learner::Gathered> Learner::gathered() {
  if (!weights_are_sharded()) return Gathered();
  const Status there = unit_weights_->gather();
  Gathered weights(unit_weights_.get());  // also of a part: it is let go
  if (!there.ok()) return there;
  return weights;
}

std::int64_t Learner::most_weights_there() {
  return weights_are_sharded() ? unit_weights_->most_there() : -1;
}

// The trained weights on the host.
const at::Tensor& Learner::weights() const {
  return host_weights_.defined() ? host_weights_ : model_->trained_parameters().arena();
}

// What an adapter drops depends on the step, so that a resumed run drops the same.
void Learner::begin_step() {
  model_->dropout_passes().begin_step(static_cast<std::uint32_t>(communicator_->rank()),
                                      optimizer_->steps());
}

void Learner::reset_optimizer() {
  forget_collected();
  shards_->forget_residual();
  const Parameters& parameters = model_->trained_parameters();
  const std::int64_t size = shards_->home().elements();
  const std::vector<ArenaRange> decayed =
      shards_->home().packed_parts(decayed_ranges(parameters.specs(), options_.decay_norms));
  optimizer_.reset();  // its state is as large as twice the weights: never two at a time
  switch (options_.optimizer) {
    case OptimizerKind::kAdamW:
      optimizer_ = std::make_unique<AdamW>(size, decayed, options_.adamw);
      break;
    case OptimizerKind::kSgd:
      optimizer_ = std::make_unique<Sgd>(size, decayed, options_.sgd);
      break;
    case OptimizerKind::kMuon:
      optimizer_ = std::make_unique<Muon>(
          MatrixExchange(*communicator_, parameters.arena_size(),
                         hidden_matrices(parameters.specs()), shards_->homes()),
          decayed, options_.muon, options_.adamw);
      break;
  }
}

Result<OptimizerReport> Learner::apply(double learning_rate) {
  return guarded<OptimizerReport>("optimizer step", [&] { return take_step(learning_rate); });
}

Result<OptimizerReport> Learner::take_step(double learning_rate) {
  forget_collected();
  // A worker without samples has made no pass; what comes late would be the old weights.
  if (const Status there = offload_->await(); !there.ok()) return there;
  std::span<float> gradients;
  if (!shards_->is_summed())
    gradients = host_gradients();
  else if (!shards_->sums_in_passes())
    gradients = elements_of(host_gradients_.defined() ? host_gradients_
                                                      : model_->gradient_arena().memory().arena());
  if (communicator_->size() > 1 && !shards_->is_summed()) {
    // The others' rows and experts are not this rank's.
    if (!host_gradients_.defined()) model_->gradient_arena().overwritten();
    const Status reduced = shards_->sum(gradients);
    if (!reduced.ok()) return reduced;
  }
  OptimizerReport report;
  {
    const profile::Span span("gradient norm");
    const Result<double> norm = shards_->norm(model_->pool(), gradients);
    if (!norm.ok()) return norm.status();
    report.grad_norm = *norm;
  }
  // Every rank sees the same bits of the sum, so all of them decide alike.
  report.skipped = !std::isfinite(report.grad_norm);
  if (!report.skipped) {
    const profile::Span span("optimizer step");
    const double scale = clip_factor(report.grad_norm, options_.grad_norm_max);
    const std::span<float> all =
        shards_->sums_in_passes() ? std::span<float>() : elements_of(weights());
    const Status taken =
        shards_->step(*optimizer_, model_->pool(), all, gradients,
                      static_cast<float>(learning_rate), static_cast<float>(scale));
    if (!taken.ok()) return taken;
    if (host_weights_.defined() && !shards_->sums_in_passes())
      model_->trained_parameters().arena().copy_(host_weights_);
  }
  const profile::Span span("zero gradients");
  shards_->end_step();
  model_->zero_gradients();
  begin_step();
  return report;
}

// What passes have added; nothing where they have added it up as well.
std::span<float> Learner::host_gradients() {
  if (shards_->sums_in_passes()) return {};
  const at::Tensor& arena = model_->gradients().arena();
  if (!host_gradients_.defined()) return elements_of(arena);
  host_gradients_.copy_(arena);
  return elements_of(host_gradients_);
}

void Learner::begin_leaf(std::int64_t leaf) {
  model_->dropout_passes().begin_step(static_cast<std::uint32_t>(leaf), optimizer_->steps());
}

Status Learner::add_round(std::span<const std::uint8_t> adds, bool last) {
  return guarded<void>("sum of gradients", [&] { return sum_round(adds, last); });
}

Status Learner::sum_round(std::span<const std::uint8_t> adds, bool last) {
  if (const Status there = offload_->await(); !there.ok()) return there;
  const std::span<float> gradients = host_gradients();
  if (last && !gradients.empty() && !host_gradients_.defined())
    model_->gradient_arena().overwritten();
  if (const Status added = shards_->add_round(gradients, adds, last); !added.ok()) return added;
  if (!last) model_->zero_gradients();
  return {};
}

std::uint64_t Learner::weights_checksum() const {
  if (weights_are_sharded() && adapter() == nullptr) {
    const std::span<const float> kept = unit_weights_->kept_values();
    return XXH3_64bits(kept.data(), kept.size_bytes());
  }
  const at::Tensor& arena = weights();
  return XXH3_64bits(arena.const_data_ptr<float>(),
                     static_cast<std::size_t>(arena.numel()) * sizeof(float));
}

Status Learner::check_equal_weights() {
  const bool in_parts = weights_are_sharded() && adapter() == nullptr;
  const auto parts = static_cast<std::size_t>(in_parts ? unit_weights_->shard_ranks() : 1);
  const Result<std::vector<std::uint64_t>> checksums =
      communicator_->all_gather(weights_checksum());
  if (!checksums.ok()) return checksums.status();
  for (std::size_t rank = parts; rank < checksums->size(); ++rank) {
    if ((*checksums)[rank] == (*checksums)[rank % parts]) continue;
    return runtime::internal_error("the weights of rank " + std::to_string(rank) +
                                   " differ from those of rank " + std::to_string(rank % parts));
  }
  return {};
}

const LoraAdapter* Learner::adapter() const {
  return model_->used_adapter().empty() ? nullptr : model_->adapter(model_->used_adapter());
}

const char* Learner::weights_folder() const {
  return adapter() != nullptr ? kAdapterFolder : kModelFolder;
}

Result<std::vector<std::filesystem::path>> Learner::save(const std::filesystem::path& folder) {
  const Offload::Stay here = stay();
  if (const Status there = offload_->await(); !there.ok()) return there;
  if (writes_part_) return write_part(part(), folder);
  auto files = write_learner(state(), folder);
  forget_collected();
  return files;
}

Result<bool> Learner::agree_on_parts(const std::filesystem::path& root) {
  writes_part_ = false;
  if (!shards_->is_sharded()) return false;
  const Result<bool> seen = all_ranks_see(*communicator_, root);
  if (!seen.ok()) return seen;
  writes_part_ = *seen;
  if (!*seen && communicator_->rank() == 0 && !std::exchange(logged_collecting_, true)) {
    LOG(warn,
        "not all workers see {}: the first one writes checkpoints, for which it gets the others' "
        "parts and needs the memory. On a file system that all nodes share, each writes its part",
        root.string());
  }
  return seen;
}

Status Learner::collect_state() {
  writes_part_ = false;
  if (!shards_->is_sharded()) return {};
  return guarded<void>("optimizer's state", [&]() -> Status {
    forget_collected();
    const auto room = [&] {
      return communicator_->rank() == 0 ? at::empty({model_->trained_parameters().arena_size()})
                                        : at::empty({0});
    };
    for (const OptimizerState& part : optimizer_->state()) {
      at::Tensor whole = room();
      const Status collected = shards_->collect(part.values, elements_of(whole));
      if (!collected.ok()) return collected;
      if (communicator_->rank() == 0) collected_.push_back(std::move(whole));
    }
    if (!weights_are_sharded() || adapter() != nullptr) return {};
    at::Tensor whole = room();
    const Status collected = unit_weights_->collect(elements_of(whole));
    if (collected.ok() && communicator_->rank() == 0) collected_weights_ = std::move(whole);
    return collected;
  });
}

void Learner::forget_collected() {
  collected_.clear();
  collected_weights_ = at::Tensor();
}

void Learner::forget_residual() {
  shards_->forget_residual();
  if (options_.compression.is_on() && communicator_->size() > 1 && communicator_->rank() == 0)
    LOG(info, "compressed gradients: what was not sent before the checkpoint is no part of it");
}

void Learner::snapshot(std::unique_ptr<LearnerSnapshot>& into) {
  const auto take = [&](const auto& now) {
    if (into)
      into->retake(now);
    else
      into = std::make_unique<LearnerSnapshot>(now);
  };
  if (writes_part_)
    take(part());
  else
    take(state());
  forget_collected();
}

// Of weights that a group of ranks has once a rank may keep more than its home.
LearnerPart Learner::part() const {
  const bool in_parts = weights_are_sharded() && adapter() == nullptr;
  LearnerPart part{.rank = communicator_->rank(),
                   .config = model_->config(),
                   .trained = model_->trained_parameters().specs(),
                   .adapter = adapter(),
                   .home = shards_->home(),
                   .kept = in_parts ? unit_weights_->kept() : all_,
                   .weights = {},
                   .optimizer = optimizer_->state(),
                   .optimizer_name = std::string(optimizer_->name()),
                   .optimizer_steps = optimizer_->steps()};
  if (in_parts)
    part.weights = unit_weights_->kept_values();
  else if (adapter() == nullptr)
    part.weights = elements_of(weights());
  return part;
}

LearnerState Learner::state() const {
  std::vector<OptimizerState> optimizer = optimizer_->state();
  CHECK(!shards_->is_sharded() || collected_.size() == optimizer.size());  // collect_state()
  for (std::size_t i = 0; i < collected_.size(); ++i)
    optimizer[i].values = elements_of(collected_[i]);
  return {model_->config(),
          model_->parameters(),
          adapter(),
          std::move(optimizer),
          std::string(optimizer_->name()),
          optimizer_->steps(),
          collected_,
          adapter() != nullptr           ? at::Tensor()
          : collected_weights_.defined() ? collected_weights_
                                         : host_weights_};
}

Status Learner::load_weights(const std::filesystem::path& folder) {
  return guarded<void>("weights of " + folder.string(), [&] {
    const Status read = read_weights(folder);
    if (read.ok() && host_weights_.defined())
      host_weights_.copy_(model_->trained_parameters().arena());
    return read;
  });
}

Status Learner::read_weights(const std::filesystem::path& folder) {
  if (const LoraAdapter* mine = adapter()) {
    const Result<LoraAdapter> saved = LoraAdapter::load(model_->config(), folder / kAdapterFolder);
    if (!saved.ok()) return saved.status();
    if (!std::ranges::equal(saved->parameters().specs(), mine->parameters().specs())) {
      return runtime::invalid_argument(
          (folder / kAdapterFolder).string() +
          ": an adapter of another rank, or for other layers, than this run's");
    }
    mine->parameters().arena().copy_(saved->parameters().arena());
    return {};
  }
  LoadOptions how;
  if (weights_are_sharded()) how.only = unit_weights_->needed();
  const Result<Parameters> parameters =
      Parameters::load(model_->config(), folder / kModelFolder, how);
  if (!parameters.ok()) return parameters.status();
  if (weights_are_sharded())
    unit_weights_->keep_from(elements_of(parameters->arena()));
  else
    model_->parameters().arena().copy_(parameters->arena());
  return {};
}

// Of each parameter what is at home.
Status Learner::read_moments(const std::filesystem::path& folder) {
  const PackedRanges& home = shards_->home();
  const bool is_part = home.elements() < model_->trained_parameters().arena().numel();
  Result<std::unique_ptr<WeightSource>> moments =
      open_safetensors(folder / kMomentsFile,
                       is_part ? WeightReading::kPastPageCache : WeightReading::kThroughPageCache);
  if (!moments.ok()) return moments.status();
  struct Piece {
    std::string name;
    std::int64_t first = 0;
    std::span<float> into;
  };
  std::vector<Piece> pieces;
  for (const ParameterSpec& spec : model_->trained_parameters().specs()) {
    const RangeSet mine = home.set().intersected({{spec.offset, spec.offset + spec.count}});
    for (const OptimizerState& part : optimizer_->state()) {
      const std::string name = part.name + "." + spec.name;
      const TensorInfo* info = (*moments)->find(name);
      if (info != nullptr && info->element_count() != spec.count) {
        return runtime::invalid_argument((folder / kMomentsFile).string() + ": tensor " + name +
                                         " has " + std::to_string(info->element_count()) +
                                         " elements, not " + std::to_string(spec.count));
      }
      for (const ArenaRange& there : in_pieces(mine, kReadElements))
        pieces.push_back(
            {name, there.begin - spec.offset, part_of(part.values, home.packed(there))});
    }
  }
  return read_pieces(
      pieces.size(), static_cast<std::size_t>(at::get_num_threads()), [&](std::size_t i) {
        return (*moments)->read_f32_range(pieces[i].name, pieces[i].first, pieces[i].into);
      });
}

Status Learner::load(const std::filesystem::path& folder) {
  const Offload::Stay here = stay();
  if (const Status there = offload_->await(); !there.ok()) return there;
  if (const Status status = load_weights(folder); !status.ok()) return status;

  const Result<nlohmann::ordered_json> state = read_checkpoint_json(folder, kOptimizerFile);
  if (!state.ok()) return state.status();
  if (const auto name = state->find("optimizer");
      name == state->end() || *name != std::string(optimizer_->name())) {
    return runtime::invalid_argument((folder / kOptimizerFile).string() + ": not the state of " +
                                     std::string(optimizer_->name()) +
                                     ", which this run's optim.optimizer names");
  }
  if (const Status read = read_moments(folder); !read.ok()) return read;
  forget_residual();
  const auto steps = state->find("steps");
  if (steps == state->end() || !steps->is_number_unsigned()) {
    return runtime::invalid_argument((folder / kOptimizerFile).string() + ": no count of steps");
  }
  optimizer_->set_steps(steps->get<std::int64_t>());
  begin_step();
  return {};
}

}  // namespace rl
