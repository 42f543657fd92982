// ReplayedSource: groups of samples of earlier steps are trained on along with a step's own.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"
#include "rl/run/rl/sample_store.h"

namespace rl {

struct ReplayedSourceOptions {
  SampleStoreOptions store;
  std::int64_t mini_batch_prompts = 1;
  std::uint64_t seed = 0;
};

/// Its file in a checkpoint has the stored groups with their tokens.
class ReplayedSource : public SourceDecorator {
 public:
  ReplayedSource(const ReplayedSourceOptions& options, std::unique_ptr<SampleSource> inner,
                 BatchCalls& batches)
      : SourceDecorator(std::move(inner)),
        options_(options),
        batches_(batches),
        store_(options.store) {}

  runtime::Result<StepBatch> next(const SampleRequest& request, StepTimer& timer) override;

  std::vector<StateFile> state_files() const override;
  runtime::Status restore(const std::filesystem::path& folder, const SavedAt& at) override;
  bool can_repeat_step() const override { return false; }

 private:
  // One worker's groups of one stored batch.
  struct Taken {
    runtime::ObjectRef<RolloutBatch> batch;
    std::vector<std::int64_t> rows = {};
    std::vector<StoredGroup> groups = {};
  };

  std::vector<StoredGroup> draw(StepBatch& batch, std::int64_t step);
  runtime::Status append(StepBatch& batch, std::vector<StoredGroup> groups);
  runtime::Result<std::vector<Generated>> gather(const StepBatch& batch,
                                                 const std::vector<std::vector<Taken>>& taken,
                                                 std::size_t round);
  std::int64_t forget_lost(std::vector<std::vector<Taken>>& taken, std::size_t round);
  static std::vector<Taken> by_batch(std::vector<StoredGroup> groups);
  runtime::Status restore_store(const std::filesystem::path& file);

  ReplayedSourceOptions options_;
  BatchCalls& batches_;
  SampleStore store_;
};

}  // namespace rl
