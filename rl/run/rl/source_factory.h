// The stack of sample sources that a configuration asks for: the one place that knows them all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rl/run/rl/balancer.h"
#include "rl/run/rl/references.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/sample_source.h"
#include "rl/run/rl/score_reader.h"
#include "rl/run/rl/trainer_options.h"

namespace rl {

/// What sources borrow.
struct SourceParts {
  PromptSource& prompts;
  GenerateCalls& generate;
  PartialCalls& partial;
  AheadCalls& ahead;
  BatchCalls& batches;
  ScoreCalls& reward;
  ScoreReader& reader;
  Balancer& balancer;
  References& references;
};

struct SourceOptions {
  std::int64_t total_steps = 0;     // of the run
  std::int64_t group_size_min = 1;  // see ScoredSourceOptions
  std::string weights_name;         // unique to the run
};

std::unique_ptr<SampleSource> make_source(const TrainerOptions& options,
                                          const SourceOptions& source, const SourceParts& parts);

}  // namespace rl
