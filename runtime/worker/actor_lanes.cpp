#include "runtime/worker/actor_lanes.h"

#include <algorithm>
#include <utility>

namespace runtime {

void ActorLanes::configure(const ExecutionOptions& options, const ActorClass& actor_class) {
  default_.limit = options.max_concurrency;
  if (options.concurrency_groups.empty()) return;
  groups_ = std::make_unique<Groups>();
  groups_->lanes = std::vector<Lane>(options.concurrency_groups.size());
  std::size_t at = 0;
  for (const auto& [name, limit] : options.concurrency_groups) {
    groups_->lanes[at].limit = limit;
    for (const MethodEntry& method : actor_class.methods()) {
      if (method.concurrency_group == name) groups_->lane_of.emplace(method.id, at);
    }
    ++at;
  }
}

Lane& ActorLanes::lane_of(MethodId method) {
  if (!groups_) return default_;
  auto found = groups_->lane_of.find(method);
  return found == groups_->lane_of.end() ? default_ : groups_->lanes[found->second];
}

void ActorLanes::put_back(JobLine& jobs) {
  JobLine reversed;
  while (auto job = jobs.pop()) reversed.push_front(std::move(job));
  while (auto job = reversed.pop()) lane_of(job->call.method).line.push_front(std::move(job));
}

std::unique_ptr<ActorJob> ActorLanes::pop(Lane** lane) {
  const auto take = [&](Lane& from) {
    *lane = &from;
    ++from.active;
    return from.line.pop();
  };
  if (!groups_) return default_.is_runnable() ? take(default_) : nullptr;
  const std::size_t count = groups_->lanes.size() + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (groups_->turn + i) % count;
    Lane& candidate = at + 1 == count ? default_ : groups_->lanes[at];
    if (!candidate.is_runnable()) continue;
    groups_->turn = (at + 1) % count;
    return take(candidate);
  }
  return nullptr;
}

std::unique_ptr<ActorJob> ActorLanes::take_any() {
  if (auto job = default_.line.pop()) return job;
  if (!groups_) return nullptr;
  for (Lane& lane : groups_->lanes) {
    if (auto job = lane.line.pop()) return job;
  }
  return nullptr;
}

std::unique_ptr<ActorJob> ActorLanes::take(const Channel* channel, std::uint64_t sequence) {
  const auto is_it = [&](const ActorJob& job) {
    return job.channel.get() == channel && job.call.sequence == sequence;
  };
  if (auto job = default_.line.take_first(is_it)) return job;
  if (!groups_) return nullptr;
  for (Lane& lane : groups_->lanes) {
    if (auto job = lane.line.take_first(is_it)) return job;
  }
  return nullptr;
}

const Lane* ActorLanes::find(const Channel* channel, std::uint64_t sequence) const {
  const auto is_it = [&](const ActorJob& job) {
    return job.channel.get() == channel && job.call.sequence == sequence;
  };
  if (default_.line.contains(is_it)) return &default_;
  if (!groups_) return nullptr;
  for (const Lane& lane : groups_->lanes) {
    if (lane.line.contains(is_it)) return &lane;
  }
  return nullptr;
}

bool ActorLanes::is_runnable() const {
  if (default_.is_runnable()) return true;
  return groups_ && std::any_of(groups_->lanes.begin(), groups_->lanes.end(),
                                [](const Lane& lane) { return lane.is_runnable(); });
}

std::size_t ActorLanes::size() const {
  std::size_t total = default_.line.size();
  if (groups_) {
    for (const Lane& lane : groups_->lanes) total += lane.line.size();
  }
  return total;
}

std::uint32_t ActorLanes::limit() const {
  std::uint32_t total = default_.limit;
  if (groups_) {
    for (const Lane& lane : groups_->lanes) total += lane.limit;
  }
  return total;
}

}  // namespace runtime
