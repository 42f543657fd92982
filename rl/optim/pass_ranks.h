// PassRanks: the ranks that share this rank's passes, and what links them.
#pragma once

#include <memory>
#include <optional>

#include "rl/comm/pulse.h"
#include "rl/comm/training_ranks.h"
#include "rl/mesh/pass_sharing.h"
#include "rl/model/pass_team.h"
#include "runtime/core/status.h"

namespace rl {

/// Owns the links of a team, and of its stages where it is a pipeline.
class PassRanks {
 public:
  /// Of the whole group, takes the links of the team, which there must be, as `sharing` says.
  /// `streams`: whether stages may have several passes in flight.
  PassRanks(const Communicator& all, TrainingRanks& ranks, const PassSharing& sharing,
            bool streams);

  const PassTeam& team() const { return *team_; }

  /// Adds where this rank stands with them to where it stands otherwise. From any thread.
  void add_to(Pulse& pulse) const;
  /// See Communicator.
  void abort(const runtime::Status& why) const;

 private:
  std::unique_ptr<Communicator> links_;
  std::unique_ptr<Communicator> stage_links_;  // null: the rank alone is its stage
  std::unique_ptr<PipelineLinks> pipeline_links_;
  std::optional<PassTeam> stage_;
  std::optional<PassTeam> team_;
};

}  // namespace rl
