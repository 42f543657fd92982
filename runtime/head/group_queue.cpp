#include "runtime/head/group_queue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/head/head_words.h"

namespace runtime {

void GroupQueue::add(GroupId id, Deadline deadline) {
  const GroupState& group = *context_.tables.groups().find(id);
  if (pending_.empty()) shapes_.clear();
  Wish wish(group.spec.strategy, group.spec.bundles, group.spec.bundle_labels, group.is_torn());
  const std::size_t shape = shapes_.try_emplace(std::move(wish), shapes_.size()).first->second;
  const std::uint64_t number = ++arrivals_;
  pending_.emplace(number, Pending{id, deadline, shape});
  arrival_of_[id] = number;
}

void GroupQueue::remove(GroupId id) {
  auto at = arrival_of_.find(id);
  if (at == arrival_of_.end()) return;
  pending_.erase(at->second);
  arrival_of_.erase(at);
}

void GroupQueue::extend(GroupId id, Deadline deadline) {
  Pending& pending = pending_.at(arrival_of_.at(id));
  pending.deadline = std::max(pending.deadline, deadline);
}

const std::string& GroupQueue::user_of(GroupId group) const {
  static const std::string unknown;
  const GroupState* state = context_.tables.groups().find(group);
  const JobRecord* job = state ? context_.tables.jobs().find(state->job) : nullptr;
  return job ? job->info.user : unknown;
}

// Round after round with one group of each user, beginning with the user who has not got a place
// for longest.
std::vector<GroupQueue::Pending> GroupQueue::in_turn(const IsUnderWay& is_under_way) const {
  using Turn = std::tuple<std::size_t /* round */, std::uint64_t /* last turn */, std::uint64_t>;
  std::map<std::string, std::size_t> rounds;
  std::map<Turn, Pending> ordered;
  for (const auto& [number, pending] : pending_) {
    if (is_under_way(pending.group)) continue;
    const std::string& user = user_of(pending.group);
    const auto last = last_turns_.find(user);
    const std::uint64_t last_turn = last == last_turns_.end() ? 0 : last->second;
    ordered.emplace(Turn(rounds[user]++, last_turn, number), pending);
  }
  std::vector<Pending> groups;
  groups.reserve(ordered.size());
  for (const auto& [turn, pending] : ordered) groups.push_back(pending);
  return groups;
}

void GroupQueue::place_all(const IsUnderWay& is_under_way, const Place& place) {
  const ClusterTables& tables = context_.tables;
  // Those like one that has no room have none either: within one look at all of them, there is only
  // less.
  std::map<std::size_t, GroupId> without_room;
  for (const auto& [id, deadline, shape] : in_turn(is_under_way)) {
    const GroupState* group = tables.groups().find(id);
    if (!group) continue;  // it went with another
    auto like = without_room.find(shape);
    const GroupState* other =
        like == without_room.end() ? nullptr : tables.groups().find(like->second);
    if (!other) {
      const std::string user = user_of(id);
      if (!place(id))
        without_room[shape] = id;
      else if (is_under_way(id))  // else it is gone, or waits for its own actors
        last_turns_[user] = ++turns_;
      continue;
    }
    std::string reason = other->pending_reason;
    const std::string its_name = head_words::describe(other->spec);
    if (const std::size_t at = reason.find(its_name); at != std::string::npos)
      reason.replace(at, its_name.size(), head_words::describe(group->spec));
    if (reason != group->pending_reason)
      context_.commit(command::GroupWaits{id, std::move(reason)});
  }
}

std::vector<GroupId> GroupQueue::late(Deadline now) const {
  std::vector<GroupId> late;
  for (const auto& [number, pending] : pending_) {
    if (pending.deadline <= now) late.push_back(pending.group);
  }
  return late;
}

Deadline GroupQueue::earliest() const {
  Deadline earliest = Deadline::max();
  for (const auto& [number, pending] : pending_) earliest = std::min(earliest, pending.deadline);
  return earliest;
}

std::vector<GroupId> GroupQueue::groups() const {
  std::vector<GroupId> groups;
  groups.reserve(pending_.size());
  for (const auto& [number, pending] : pending_) groups.push_back(pending.group);
  return groups;
}

}  // namespace runtime
