// SampleStore: scored groups of samples from earlier steps, to be trained on again (experience
// replay; Lin 1992). It lives with the controller and holds references and scalars: tokens stay
// where they were generated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "rl/batch/rollout_batch.h"
#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "runtime/call/object_ref.h"
#include "runtime/core/result.h"

namespace rl {

/// Which of the stored groups come first.
enum class ReplayOrder {
  kUniform,   // each as likely
  kVariance,  // as likely as its scores are far apart: where they are equal nothing is learned from
              // them
  kNewest,    // those of the last steps
};

struct SampleStoreOptions {
  bool enabled = false;
  double replay_ratio = 0.5;     // groups replayed a step, as a share of the fresh ones
  std::int64_t capacity = 1024;  // groups; the oldest go first
  std::int64_t age_max = 8;      // steps; older groups go
  std::int64_t uses_max = 1;     // how often a group is replayed
  ReplayOrder order = ReplayOrder::kUniform;
  double score_deviation_min = 0.0;  // groups whose scores deviate less (population) are not kept
  std::optional<double> score_min = {};  // nor groups whose mean score is below
  std::optional<double> score_max = {};  // or above

  /// From `sample_store.*`. kInvalidArgument: a value out of range, by key.
  static runtime::Result<SampleStoreOptions> from_config(const Config& config);
};

/// The samples of one prompt.
struct StoredGroup {
  runtime::ObjectRef<RolloutBatch> batch;
  std::int64_t row = 0;   // of the prompt in the batch
  std::int64_t step = 0;  // that generated it
  std::int64_t uses = 0;  // as a replay
  RewardTask task;
  std::vector<double> scores;                   // of each sample
  std::vector<double> baselines;                // of each, where the algorithm has them
  std::vector<std::vector<double>> components;  // of each, the same
};

/// A group as a checkpoint has it: with its tokens.
struct SavedGroup {
  RolloutBatch batch;  // of this prompt alone
  std::int64_t step = 0;
  std::int64_t uses = 0;
  RewardTask task;
  std::vector<double> scores;
  std::vector<double> baselines;
  std::vector<std::vector<double>> components;

  auto fields() { return std::tie(batch, step, uses, task, scores, baselines, components); }
  bool operator==(const SavedGroup&) const = default;
};

/// A value: a copy is what a checkpoint writes while training goes on.
class SampleStore {
 public:
  SampleStore() = default;
  explicit SampleStore(const SampleStoreOptions& options) : options_(options) {}

  /// Takes a step's groups, but those that the options leave out, in place of the oldest.
  void add(std::vector<StoredGroup> groups);

  /// Up to `count` groups of steps before `step`, in an order that the seed decides; each counts as
  /// used once more. Drops those that are too old first.
  std::vector<StoredGroup> draw(std::int64_t step, std::int64_t count, std::uint64_t seed);

  /// Drops every group of that batch: it was lost with the node that held it. Returns how many.
  std::int64_t forget(const runtime::ObjectRef<RolloutBatch>& batch);

  /// Puts back what a checkpoint had.
  void restore(std::vector<StoredGroup> groups) { groups_ = std::move(groups); }

  const SampleStoreOptions& options() const { return options_; }
  const std::vector<StoredGroup>& groups() const { return groups_; }  // oldest first

  /// "sample_store/size" and "sample_store/age_mean", in steps.
  Metrics metrics(std::int64_t step) const;

 private:
  bool keeps(const StoredGroup& group) const;

  SampleStoreOptions options_;
  std::vector<StoredGroup> groups_;
};

/// The file of a checkpoint. Bytes of this machine's byte order, checked by the checkpoint's
/// checksum.
std::string encode_groups(const std::vector<SavedGroup>& groups);

/// kInvalidArgument: not such a file, or groups that are inconsistent; for files from outside.
runtime::Result<std::vector<SavedGroup>> decode_groups(std::string_view bytes);

}  // namespace rl
