// Reservations: the resources of a node that placement groups hold, reserved by the head in two
// phases.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/control/control.h"

namespace runtime {

/// The node's side: it answers for what it holds, whatever head asks. A value without threads.
class Reservations {
 public:
  /// `offered` is what the node has in all.
  explicit Reservations(const ResourceMap& offered);

  /// Does what is asked, in the order of the members. Nothing is prepared when the node takes
  /// nothing new (`closed` says why; empty: it does).
  control::Refusals apply(const control::Reserve& reserve, const std::string& closed);
  /// The head that asked for them may be gone: what was prepared and not committed is dropped.
  void drop_prepared();

  bool holds(GroupId group) const { return held_.contains(group); }
  std::size_t size() const { return held_.size(); }

 private:
  // In units of resource_units.h, as the scheduler counts.
  using Amounts = std::map<std::string, std::int64_t>;
  struct Held {
    Amounts amounts;
    bool committed = false;
  };

  static Amounts amounts_of(const ResourceMap& resources);
  /// The resources that are missing for `wanted`; empty: none.
  std::string missing(const Amounts& wanted) const;
  void prepare(const control::Holding& holding, control::Refusals& refusals);
  void release(GroupId group);

  const Amounts offered_;
  Amounts used_;
  std::map<GroupId, Held> held_;
};

}  // namespace runtime
