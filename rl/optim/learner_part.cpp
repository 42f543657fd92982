#include "rl/optim/learner_part.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "rl/checkpoint/shared_file.h"
#include "rl/mesh/range_set.h"
#include "rl/model/save.h"
#include "rl/model/tensor_span.h"
#include "rl/optim/learner_snapshot.h"
#include "rl/weights/safetensors.h"
#include "rl/weights/safetensors_layout.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::Result;
using runtime::Status;

// Its parent belongs to a checkpoint that is being written, or has been given up and removed.
Status make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) return {};
  return runtime::errno_status(errno, "making " + folder.string());
}

// A file of this layout, with its header if rank 0 asks.
Result<SharedFile> open_file(const fs::path& path, const SafetensorsLayout& layout, bool is_first) {
  Result<SharedFile> file = SharedFile::open(path, layout.bytes, /*reserves=*/is_first);
  if (!file.ok() || !is_first) return file;
  if (const Status written = file->write(0, layout.header); !written.ok()) return written;
  return file;
}

constexpr std::uint64_t bytes_of(std::int64_t elements) {
  return static_cast<std::uint64_t>(elements) * sizeof(float);
}

// Elements `range` of a parameter, from its first one, into a tensor that begins at `offset`.
Status write_range(SharedFile& file, std::uint64_t offset, ArenaRange range,
                   std::span<const float> values) {
  return file.write(offset + bytes_of(range.begin), std::as_bytes(values));
}

// The first row whose element of this column is not before `element`.
std::int64_t row_from(std::int64_t element, std::int64_t column, std::int64_t columns) {
  return (element - column + columns - 1) / columns;
}

// The same where the file has the matrix the other way round. Of each of the file's rows, which are
// the columns here, it writes the stretch whose elements are in the range. Columns that share lines
// of the processor's cache are read together.
Status write_turned(SharedFile& file, std::uint64_t offset, const ParameterSpec& spec,
                    ArenaRange range, std::span<const float> values) {
  constexpr std::int64_t kTogether = 16;
  const std::int64_t rows = spec.shape[0], columns = spec.shape[1];
  std::vector<std::vector<float>> stretches(kTogether);
  for (std::int64_t begin = 0; begin < columns; begin += kTogether) {
    const std::int64_t end = std::min(begin + kTogether, columns);
    for (std::vector<float>& stretch : stretches) stretch.clear();
    const std::int64_t last = row_from(range.end, begin, columns);
    for (std::int64_t row = row_from(range.begin, end - 1, columns); row < last; ++row) {
      for (std::int64_t column = begin; column < end; ++column) {
        const std::int64_t element = row * columns + column;
        if (element >= range.begin && element < range.end)
          stretches[static_cast<std::size_t>(column - begin)].push_back(
              values[static_cast<std::size_t>(element - range.begin)]);
      }
    }
    for (std::int64_t column = begin; column < end; ++column) {
      const std::int64_t first = row_from(range.begin, column, columns);
      const Status written =
          file.write(offset + bytes_of(column * rows + first),
                     std::as_bytes(std::span(stretches[static_cast<std::size_t>(column - begin)])));
      if (!written.ok()) return written;
    }
  }
  return {};
}

Status write_weights(const LearnerPart& part, const fs::path& path) {
  std::vector<PlannedTensor> planned;
  for (const ParameterSpec& spec : part.trained) {
    planned.push_back({spec.name, spec.shape});
    if (spec.transposed) std::ranges::reverse(planned.back().shape);
  }
  const Result<SafetensorsLayout> layout = plan_safetensors(planned, {{"format", "pt"}});
  if (!layout.ok()) return layout.status().with_context(path.string());
  Result<SharedFile> file = open_file(path, *layout, part.rank == 0);
  if (!file.ok()) return file.status();
  for (std::size_t i = 0; i < part.trained.size(); ++i) {
    const ParameterSpec& spec = part.trained[i];
    const RangeSet mine = part.home.set().intersected({{spec.offset, spec.offset + spec.count}});
    for (const ArenaRange& there : mine.ranges()) {
      const ArenaRange range{there.begin - spec.offset, there.end - spec.offset};
      const std::span<const float> values = part_of(part.weights, part.kept.packed(there));
      const Status written = spec.transposed
                                 ? write_turned(*file, layout->offsets[i], spec, range, values)
                                 : write_range(*file, layout->offsets[i], range, values);
      if (!written.ok()) return written;
    }
  }
  return file->finish();
}

Status write_moments(const LearnerPart& part, const fs::path& path) {
  std::vector<PlannedTensor> planned;
  for (const ParameterSpec& spec : part.trained)
    for (const OptimizerState& state : part.optimizer)
      planned.push_back({state.name + "." + spec.name, spec.shape});
  const Result<SafetensorsLayout> layout = plan_safetensors(planned, {});
  if (!layout.ok()) return layout.status().with_context(path.string());
  Result<SharedFile> file = open_file(path, *layout, part.rank == 0);
  if (!file.ok()) return file.status();
  auto offset = layout->offsets.begin();
  for (const ParameterSpec& spec : part.trained) {
    const RangeSet mine = part.home.set().intersected({{spec.offset, spec.offset + spec.count}});
    for (const OptimizerState& state : part.optimizer) {
      for (const ArenaRange& there : mine.ranges()) {
        const Status written =
            write_range(*file, *offset, {there.begin - spec.offset, there.end - spec.offset},
                        part_of(std::span<const float>(state.values), part.home.packed(there)));
        if (!written.ok()) return written;
      }
      ++offset;
    }
  }
  return file->finish();
}

Result<std::vector<fs::path>> write_all(const LearnerPart& part, const fs::path& folder) {
  const bool is_first = part.rank == 0;
  Status status = make_folder(folder);
  if (status.ok()) status = write_moments(part, folder / kMomentsFile);
  if (status.ok() && part.adapter == nullptr) {
    status = make_folder(folder / kModelFolder);
    if (status.ok()) status = write_weights(part, folder / kModelFolder / kSafetensorsFile);
    if (status.ok() && is_first) status = save_model_configs(part.config, folder / kModelFolder);
  }
  if (!status.ok()) return status;
  if (!is_first) return std::vector<fs::path>();
  if (part.adapter != nullptr) status = part.adapter->save(folder / kAdapterFolder);
  if (status.ok()) status = write_optimizer_file(part.optimizer_name, part.optimizer_steps, folder);
  if (!status.ok()) return status;
  return learner_files(part.trained, part.adapter != nullptr);
}

}  // namespace

Result<std::vector<fs::path>> write_part(const LearnerPart& part, const fs::path& folder) {
  Result<std::vector<fs::path>> files = write_all(part, folder);
  if (files.ok()) return files;
  return files.status().with_context("rank " + std::to_string(part.rank));
}

PartSnapshot::PartSnapshot(const LearnerPart& part)
    : rank_(part.rank),
      trained_(part.trained.begin(), part.trained.end()),
      home_(part.home),
      optimizer_name_(part.optimizer_name) {
  if (!part.weights.empty()) weights_ = at::empty({home_.elements()});
  for (const OptimizerState& state : part.optimizer) {
    optimizer_names_.push_back(state.name);
    optimizer_values_.push_back(at::empty({home_.elements()}));
  }
  copy(part);
}

void PartSnapshot::retake(const LearnerPart& part) {
  const bool fits = home_.set() == part.home.set() && weights_.defined() == !part.weights.empty() &&
                    optimizer_values_.size() == part.optimizer.size();
  if (fits)
    copy(part);
  else
    *this = PartSnapshot(part);
}

namespace {

// On at::get_num_threads() threads.
void copy_values(std::span<const float> from, std::span<float> to) {
  const auto size = static_cast<std::int64_t>(from.size());
  at::from_blob(to.data(), {size}, at::kFloat)
      .copy_(at::from_blob(const_cast<float*>(from.data()), {size}, at::kFloat));
}

}  // namespace

void PartSnapshot::copy(const LearnerPart& part) {
  if (weights_.defined()) {
    for (const ArenaRange& range : home_.set().ranges())
      copy_values(part_of(part.weights, part.kept.packed(range)),
                  part_of(elements_of(weights_), home_.packed(range)));
  }
  for (std::size_t i = 0; i < optimizer_values_.size(); ++i)
    copy_values(part.optimizer[i].values, elements_of(optimizer_values_[i]));
  optimizer_steps_ = part.optimizer_steps;
}

Result<std::vector<fs::path>> PartSnapshot::write(const ModelConfig& config,
                                                  const LoraAdapter* adapter,
                                                  const fs::path& folder) const {
  LearnerPart part{.rank = rank_,
                   .config = config,
                   .trained = trained_,
                   .adapter = adapter,
                   .home = home_,
                   .kept = home_,
                   .weights = {},
                   .optimizer = {},
                   .optimizer_name = optimizer_name_,
                   .optimizer_steps = optimizer_steps_};
  if (weights_.defined()) part.weights = elements_of(weights_);
  for (std::size_t i = 0; i < optimizer_values_.size(); ++i)
    part.optimizer.push_back({optimizer_names_[i], elements_of(optimizer_values_[i])});
  return write_part(part, folder);
}

}  // namespace rl
