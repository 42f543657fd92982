// DemandShapes: the shapes of pending requests, each once.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "runtime/control/demand.h"
#include "runtime/control/membership.h"

namespace runtime {

/// Fills the lists of a demand, up to their limits; the rest is counted.
class DemandShapes {
 public:
  explicit DemandShapes(Demand& demand) : demand_(demand) {}

  void add(const ActorSpec& actor);
  void add(const GroupSpec& group);
  /// One that waits for what it reserves.
  void add(const JobInfo& job, const GroupSpec& place);

 private:
  using Known = std::map<std::pair<ResourceMap, Labels>, std::size_t>;  // where each is in its list

  template <class Describe>
  void add_place(Known& known, std::vector<PlaceShape>& list, const ResourceMap& resources,
                 const Labels& labels, Describe description);

  Demand& demand_;
  Known actors_, jobs_;
  std::vector<GroupSpec> shapes_;  // of demand_.groups
  std::size_t bundles_ = 0;
  std::size_t last_ = 0;  // that a group was like
};

}  // namespace runtime
