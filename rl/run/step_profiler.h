// StepProfiler: profiles of chosen steps over all processes of a run, each a Chrome trace.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rl/actor/worker_group.h"
#include "rl/profile/recording.h"
#include "rl/profile/trace.h"
#include "rl/run/profile_options.h"
#include "runtime/core/result.h"

namespace rl {

/// A worker group, whatever its class: what a profile needs of it.
struct ProfiledGroup {
  std::string role;
  std::size_t size = 0;
  std::function<runtime::Result<std::vector<profile::ProfileStarted>>(
      std::vector<profile::ProfileRequest>)>
      begin;
  std::function<runtime::Result<std::vector<profile::Recording>>()> end;
};

/// Copies the handles.
template <class Actor>
ProfiledGroup profiled(std::string role, const WorkerGroup<Actor>& group) {
  return {std::move(role), group.size(),
          [group](std::vector<profile::ProfileRequest> requests) {
            return group.fetch(&Actor::begin_profile, runtime::split(std::move(requests)));
          },
          [group] { return group.fetch(&Actor::end_profile); }};
}

/// Records the steps that the options name. What goes wrong with a profile is a warning: training
/// is worth more. One thread at a time.
class StepProfiler {
 public:
  StepProfiler() = default;
  explicit StepProfiler(ProfileOptions options) : options_(std::move(options)) {}

  /// The first step that is to be recorded; 0: none is.
  std::int64_t first_wanted() const { return options_.steps.empty() ? 0 : *options_.steps.begin(); }

  /// Before a step: begins to record if it is wanted. `groups` is called only then.
  void before(std::int64_t step, const std::function<std::vector<ProfiledGroup>()>& groups);

  /// Behind it: writes the trace unless the next step belongs to it, and says where the time went.
  void after(std::int64_t step);

  /// Ends what still goes on.
  void finish();

 private:
  runtime::Result<std::vector<profile::ProfiledProcess>> collect();

  ProfileOptions options_;
  std::vector<ProfiledGroup> groups_;  // that are being recorded; empty while nothing is
  std::vector<std::vector<std::int64_t>>
      ahead_ns_;  // of each group's members: their clocks less ours
  std::int64_t first_step_ = 0;
  std::int64_t last_step_ = 0;
  std::int64_t begin_ns_ = 0;       // of the first step
  std::int64_t step_begin_ns_ = 0;  // of the present one
};

}  // namespace rl
