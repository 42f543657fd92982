// TrainingRanks: a rank's connections to those that it trains one model with.
#pragma once

#include <memory>
#include <utility>

#include "rl/comm/communicator.h"
#include "rl/comm/pipeline_links.h"

namespace rl {

struct TrainingRanks {
  std::unique_ptr<Communicator> all;
  /// Those that share this rank's passes (tensor parallelism): the rank at position p of team d of
  /// n teams is p * n + d of all. Null: it makes its passes alone.
  std::unique_ptr<Communicator> team = nullptr;
  /// Those of the team that are in this rank's stage of its pipeline. Null: it alone, or there are
  /// no stages.
  std::unique_ptr<Communicator> stage = nullptr;
  /// Between the ranks of the team, where they are stages of one rank each and may have several
  /// passes in flight; else null.
  std::unique_ptr<PipelineLinks> pipeline = nullptr;

  TrainingRanks() = default;
  /// Makes ranks without teams.
  TrainingRanks(std::unique_ptr<Communicator> ranks) : all(std::move(ranks)) {}
  TrainingRanks(std::unique_ptr<Communicator> ranks, std::unique_ptr<Communicator> sharing,
                std::unique_ptr<Communicator> of_stage = nullptr)
      : all(std::move(ranks)), team(std::move(sharing)), stage(std::move(of_stage)) {}
};

}  // namespace rl
