// The parts of a run that depend on the advantage estimator, chosen in one place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "rl/run/rl/credit_assigner.h"
#include "rl/run/rl/credit_phase.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/score_reader.h"
#include "rl/run/rl/trainer_options.h"

namespace rl {

struct CreditCalls {
  GenerateCalls& policy;
  ScoreCalls& reward;
  EstimateCalls& estimates;
};

struct CreditParts {
  std::unique_ptr<ScoreReader> reader;
  std::unique_ptr<CreditPhase> phase = nullptr;
  /// Of a group in which samples lack a score at least this many others stay, or none.
  std::int64_t group_size_min = 1;
  /// Before this step only the critic learns; 0: none.
  std::int64_t critic_warmup = 0;
  /// The rows of the data that the next step is of; no function: always the next ones.
  std::function<std::vector<std::int64_t>()> chosen_rows = {};
};

/// `data_rows`: how many rows the training data have.
CreditParts make_credit(const TrainerOptions& options, const CreditCalls& calls,
                        std::int64_t data_rows);

}  // namespace rl
