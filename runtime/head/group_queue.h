// GroupQueue: the placement groups that wait for a place. Users take turns; those of one user look
// in order of arrival.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/head/head_context.h"

namespace runtime {

class GroupQueue {
 public:
  /// False when there is no room for the group now.
  using Place = std::function<bool(GroupId)>;
  /// Whether it has a place, and its nodes are being asked.
  using IsUnderWay = std::function<bool(GroupId)>;

  explicit GroupQueue(const HeadContext& context) : context_(context) {}

  void add(GroupId group, Deadline deadline);
  /// Ignores one that does not wait.
  void remove(GroupId group);
  /// Moves the deadline of a group that waits to this one, if it is later.
  void extend(GroupId group, Deadline deadline);
  /// A look at all but those that are under way.
  void place_all(const IsUnderWay& is_under_way, const Place& place);
  std::vector<GroupId> late(Deadline now) const;
  /// The earliest deadline.
  Deadline earliest() const;

  std::size_t size() const { return pending_.size(); }
  std::vector<GroupId> groups() const;

 private:
  /// What decides whether a group finds a place, and the reason that it gets if not.
  using Wish =
      std::tuple<GroupStrategy, std::vector<ResourceMap>, std::vector<Labels>, bool /* torn */>;
  struct Pending {
    GroupId group;
    Deadline deadline;
    std::size_t shape = 0;  // equal for those with the same wish
  };

  /// The groups in the order in which they look for room.
  std::vector<Pending> in_turn(const IsUnderWay& is_under_way) const;
  const std::string& user_of(GroupId group) const;

  const HeadContext& context_;
  std::uint64_t arrivals_ = 0;
  std::map<std::uint64_t, Pending> pending_;  // by arrival; until they are placed
  std::map<GroupId, std::uint64_t> arrival_of_;
  std::map<Wish, std::size_t> shapes_;
  std::uint64_t turns_ = 0;
  std::map<std::string, std::uint64_t> last_turns_;  // by user, of whom one got a place
};

}  // namespace runtime
