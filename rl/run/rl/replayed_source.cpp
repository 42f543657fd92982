#include "rl/run/rl/replayed_source.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>

#include "runtime/core/log.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

using runtime::ObjectRef;
using runtime::Result;
using runtime::Status;

constexpr const char* kSamplesFile = "samples.bin";

StoredGroup stored(const WorkerShare& share, std::size_t row, std::int64_t step) {
  const SampleGroup& group = share.groups[row];
  StoredGroup stored{.batch = share.batch,
                     .row = static_cast<std::int64_t>(row),
                     .step = step,
                     .uses = 0,
                     .task = group.task,
                     .scores = {},
                     .baselines = {},
                     .components = {}};
  for (const Sample& sample : group.samples) {
    stored.scores.push_back(sample.score);
    if (sample.baseline) stored.baselines.push_back(*sample.baseline);
    if (!sample.components.empty()) stored.components.push_back(sample.components);
  }
  return stored;
}

// What the reward gave besides the score is forgotten.
SampleGroup replayed(StoredGroup stored) {
  SampleGroup group{.task = std::move(stored.task)};
  for (std::size_t i = 0; i < stored.scores.size(); ++i) {
    Sample& sample = group.samples.emplace_back();
    sample.score = sample.unpenalized = stored.scores[i];
    if (!stored.baselines.empty()) sample.baseline = stored.baselines[i];
    if (!stored.components.empty()) sample.components = std::move(stored.components[i]);
  }
  return group;
}

// In turns: in how many batches the store has the groups differs once they come from a checkpoint,
// and must not matter.
void number_in_turns(StepBatch& batch, const std::vector<std::size_t>& fresh) {
  std::int64_t number = 0;
  for (const std::size_t groups : fresh) number += static_cast<std::int64_t>(groups);
  for (std::size_t turn = 0, more = 1; more > 0; ++turn) {
    more = 0;
    for (std::size_t worker = 0; worker < fresh.size(); ++worker) {
      std::vector<SampleGroup>& groups = batch.shares[worker].groups;
      if (fresh[worker] + turn >= groups.size()) continue;
      groups[fresh[worker] + turn].prompt = number++;
      ++more;
    }
  }
}

// Stored samples with their tokens. Those that went with a node are left out.
std::vector<SavedGroup> fetch_groups(const BatchCalls& batches, const SampleStore& store) {
  std::vector<SavedGroup> saved;
  ObjectRef<RolloutBatch> ref;
  std::optional<RolloutBatch> batch;  // that ref stands for
  for (const StoredGroup& group : store.groups()) {
    if (!(group.batch == ref)) {
      ref = group.batch;
      Result<RolloutBatch> fetched = batches.get(ref);
      batch = fetched.ok() ? std::optional(std::move(*fetched)) : std::nullopt;
    }
    const std::int64_t row[] = {group.row};
    Result<RolloutBatch> alone =
        batch ? append_prompts({}, *batch, row) : Result<RolloutBatch>(runtime::not_found("lost"));
    if (!alone.ok()) continue;
    saved.push_back({std::move(*alone), group.step, group.uses, group.task, group.scores,
                     group.baselines, group.components});
  }
  return saved;
}

}  // namespace

Result<StepBatch> ReplayedSource::next(const SampleRequest& request, StepTimer& timer) {
  Result<StepBatch> batch = inner().next(request, timer);
  if (!batch.ok()) return batch;
  const Status appended = append(*batch, draw(*batch, request.step));
  if (!appended.ok()) return appended;
  return batch;
}

// What was generated in this step goes into the store once what is replayed has been chosen.
std::vector<StoredGroup> ReplayedSource::draw(StepBatch& batch, std::int64_t step) {
  std::vector<StoredGroup> fresh;
  for (const WorkerShare& share : batch.shares) {
    for (std::size_t row = 0; row < share.groups.size(); ++row)
      fresh.push_back(stored(share, row, step));
  }
  const auto wanted = static_cast<std::int64_t>(
      std::lround(options_.store.replay_ratio * static_cast<double>(batch.prompts())));
  const std::uint64_t seed =
      options_.seed ^ (0xD1B54A32D192ED03ULL * static_cast<std::uint64_t>(step));
  std::vector<StoredGroup> drawn = store_.draw(step, wanted, seed);
  batch.metrics.merge(store_.metrics(step));
  double age = 0.0;
  for (const StoredGroup& group : drawn) age += static_cast<double>(step - group.step);
  batch.metrics["sample_store/replayed"] = static_cast<double>(drawn.size());
  batch.metrics["sample_store/replayed_age_mean"] =
      drawn.empty() ? 0.0 : age / static_cast<double>(drawn.size());
  store_.add(std::move(fresh));
  return drawn;
}

// Neighbours of the same batch together.
std::vector<ReplayedSource::Taken> ReplayedSource::by_batch(std::vector<StoredGroup> groups) {
  std::stable_sort(groups.begin(), groups.end(), [](const StoredGroup& a, const StoredGroup& b) {
    return a.step < b.step;
  });  // few batches, and so few rounds
  std::vector<Taken> taken;
  for (StoredGroup& group : groups) {
    if (taken.empty() || !(taken.back().batch == group.batch)) taken.push_back({group.batch});
    taken.back().rows.push_back(group.row);
    taken.back().groups.push_back(std::move(group));
  }
  return taken;
}

Result<std::vector<Generated>> ReplayedSource::gather(const StepBatch& batch,
                                                      const std::vector<std::vector<Taken>>& taken,
                                                      std::size_t round) {
  BatchRefs from;
  std::vector<std::vector<std::int64_t>> rows;
  for (const std::vector<Taken>& of_worker : taken) {
    const bool has = round < of_worker.size();
    from.push_back(has ? of_worker[round].batch : ObjectRef<RolloutBatch>());
    rows.push_back(has ? of_worker[round].rows : std::vector<std::int64_t>());
  }
  return batches_.gather(batch.batches(), from, rows);
}

// A node that is gone took its samples along. Returns how many groups.
std::int64_t ReplayedSource::forget_lost(std::vector<std::vector<Taken>>& taken,
                                         std::size_t round) {
  std::int64_t lost = 0;
  for (std::vector<Taken>& of_worker : taken) {
    if (round >= of_worker.size() || batches_.get(of_worker[round].batch).ok()) continue;
    lost += store_.forget(of_worker[round].batch);
    of_worker[round] = {};
  }
  return lost;
}

Status ReplayedSource::append(StepBatch& batch, std::vector<StoredGroup> groups) {
  std::vector<std::vector<StoredGroup>> of_workers(batch.shares.size());
  for (std::size_t i = 0; i < groups.size(); ++i)
    of_workers[i % of_workers.size()].push_back(std::move(groups[i]));
  std::vector<std::vector<Taken>> taken;
  std::vector<std::size_t> fresh;
  std::size_t rounds = 0;
  for (std::size_t worker = 0; worker < of_workers.size(); ++worker) {
    taken.push_back(by_batch(std::move(of_workers[worker])));
    fresh.push_back(batch.shares[worker].groups.size());
    rounds = std::max(rounds, taken.back().size());
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    auto gathered = gather(batch, taken, round);
    if (!gathered.ok()) {
      const std::int64_t lost = forget_lost(taken, round);
      if (lost == 0) return gathered.status();
      LOG(warn, "{} stored group(s) of samples are lost with the node that held them", lost);
      gathered = gather(batch, taken, round);
    }
    if (!gathered.ok()) return gathered.status();
    for (std::size_t worker = 0; worker < taken.size(); ++worker) {
      if (round >= taken[worker].size()) continue;
      for (StoredGroup& group : taken[worker][round].groups)
        batch.shares[worker].groups.push_back(replayed(std::move(group)));
    }
    if (const Status said = batch.take(*gathered); !said.ok()) return said;
  }
  number_in_turns(batch, fresh);
  batch.cut_mini_batches(options_.mini_batch_prompts);
  return {};
}

std::vector<StateFile> ReplayedSource::state_files() const {
  std::vector<StateFile> files{{kSamplesFile, [store = store_, &batches = batches_] {
                                  return Result<std::string>(
                                      encode_groups(fetch_groups(batches, store)));
                                }}};
  for (StateFile& file : SourceDecorator::state_files()) files.push_back(std::move(file));
  return files;
}

Status ReplayedSource::restore(const std::filesystem::path& folder, const SavedAt& at) {
  const Status restored = restore_store(folder / kSamplesFile);
  return restored.ok() ? SourceDecorator::restore(folder, at) : restored;
}

Status ReplayedSource::restore_store(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    LOG(warn, "{}: the checkpoint has no stored samples; the sample store begins empty",
        file.string());
    return {};
  }
  const std::string bytes = runtime::rest_of(in);
  Result<std::vector<SavedGroup>> saved = decode_groups(bytes);
  if (!saved.ok()) return saved.status().with_context(file.string());
  std::vector<StoredGroup> groups;
  for (SavedGroup& group : *saved) {
    Result<ObjectRef<RolloutBatch>> batch = batches_.put(group.batch);
    if (!batch.ok()) return batch.status();
    groups.push_back({.batch = std::move(*batch),
                      .row = 0,
                      .step = group.step,
                      .uses = group.uses,
                      .task = std::move(group.task),
                      .scores = std::move(group.scores),
                      .baselines = std::move(group.baselines),
                      .components = std::move(group.components)});
  }
  store_.restore(std::move(groups));
  return {};
}

}  // namespace rl
