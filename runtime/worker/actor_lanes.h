// ActorLanes: the calls in line before one actor: one lane per concurrency group, and one for all
// other methods.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/call/execution_options.h"
#include "runtime/call/registry.h"
#include "runtime/worker/actor_job.h"

namespace runtime {

/// The calls of one group in order of arrival, and how many of them run.
struct Lane {
  JobLine line;
  std::uint32_t limit = 1;
  std::uint32_t active = 0;

  bool is_runnable() const { return !line.empty() && active < limit; }
};

/// Not thread-safe: ActorHost's mutex guards it. Without groups it takes little more memory than
/// one lane.
class ActorLanes {
 public:
  /// Makes the lanes of the groups. Once, before any call of their methods is pushed.
  void configure(const ExecutionOptions& options, const ActorClass& actor_class);

  void push(std::unique_ptr<ActorJob> job) {
    auto& line = lane_of(job->call.method).line;
    line.push(std::move(job));
  }
  /// Puts jobs of one caller back where they came from: before all others of their lanes.
  void put_back(JobLine& jobs);
  /// A job that may run now, and its lane, which counts it as active until the thread that runs it
  /// decrements that. Null: there is none. The lanes take turns.
  std::unique_ptr<ActorJob> pop(Lane** lane);
  /// Any job, runnable or not; null when there is none.
  std::unique_ptr<ActorJob> take_any();
  /// Takes a call out of its line; null: it is in none. Cost: linear in the calls before it.
  std::unique_ptr<ActorJob> take(const Channel* channel, std::uint64_t sequence);

  /// The lane that a call stands in; null: it is in none. Cost: linear in the calls before it.
  const Lane* find(const Channel* channel, std::uint64_t sequence) const;

  bool is_runnable() const;
  std::size_t size() const;
  /// Calls at once, all lanes together.
  std::uint32_t limit() const;

 private:
  struct Groups {
    std::vector<Lane> lanes;
    std::unordered_map<MethodId, std::size_t> lane_of;
    std::size_t turn = 0;  // the lane to look at first; lanes.size(): the default one
  };

  Lane& lane_of(MethodId method);

  Lane default_;
  std::unique_ptr<Groups> groups_;
};

}  // namespace runtime
