// TrainingRanks: a rank's connections to those that it trains one model with.
#pragma once

#include <memory>
#include <utility>

#include "rl/comm/communicator.h"

namespace rl {

struct TrainingRanks {
  std::unique_ptr<Communicator> all;
  /// Those that share this rank's passes (tensor parallelism): the rank at position p of team d of
  /// n teams is p * n + d of all. Null: it makes its passes alone.
  std::unique_ptr<Communicator> team = nullptr;

  TrainingRanks() = default;
  /// Without teams.
  TrainingRanks(std::unique_ptr<Communicator> ranks) : all(std::move(ranks)) {}
  TrainingRanks(std::unique_ptr<Communicator> ranks, std::unique_ptr<Communicator> sharing)
      : all(std::move(ranks)), team(std::move(sharing)) {}
};

}  // namespace rl
