// FilteredSource: DAPO's dynamic sampling. Round after round of generation until there are prompts
// enough whose responses did not all score the same; Yu et al. 2025, arXiv:2503.14476, section 3.2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"

namespace rl {

struct FilteredSourceOptions {
  std::int64_t batch_prompts = 1;
  std::int64_t mini_batch_prompts = 1;
  std::int64_t rounds_max = 0;    // in one step; 0: any number
  std::string metric = "reward";  // what samples are compared by, see FilterGroupsOptions
};

/// Of each worker the rows of its groups whose responses do not all have the same value: the others
/// have no advantage to give. At most `wanted` in all, in the order of their prompts. A response
/// alone always counts, but no group of which a sample has no score.
std::vector<std::vector<std::int64_t>> informative_groups(const StepBatch& batch,
                                                          const std::string& metric,
                                                          std::int64_t wanted);

/// Adds train/num_gen_batches and train/prompts_kept_ratio.
class FilteredSource : public SourceDecorator {
 public:
  FilteredSource(FilteredSourceOptions options, std::unique_ptr<SampleSource> inner,
                 BatchCalls& batches)
      : SourceDecorator(std::move(inner)), options_(std::move(options)), batches_(batches) {}

  /// kResourceExhausted: the most rounds that may be have not been enough.
  runtime::Result<StepBatch> next(const SampleRequest& request, StepTimer& timer) override;

 private:
  runtime::Status keep(StepBatch& kept, const StepBatch& fresh, std::int64_t missing);
  runtime::Status too_few(std::int64_t rounds, std::int64_t missing) const;

  FilteredSourceOptions options_;
  BatchCalls& batches_;
};

}  // namespace rl
