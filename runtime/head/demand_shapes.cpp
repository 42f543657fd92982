#include "runtime/head/demand_shapes.h"

#include "runtime/head/head_words.h"

namespace runtime {

template <class Describe>
void DemandShapes::add_place(Known& known, std::vector<PlaceShape>& list,
                             const ResourceMap& resources, const Labels& labels,
                             Describe description) {
  auto [at, is_new] = known.try_emplace({resources, labels}, list.size());
  if (!is_new) {
    ++list[at->second].count;
    return;
  }
  if (list.size() >= Demand::kShapesMax) {
    known.erase(at);
    ++demand_.unlisted;
    return;
  }
  list.push_back({resources, labels, 1, description()});
}

void DemandShapes::add(const ActorSpec& actor) {
  add_place(actors_, demand_.actors, actor.resources, actor.labels,
            [&] { return head_words::describe(actor); });
}

void DemandShapes::add(const JobInfo& job, const GroupSpec& place) {
  const Labels labels = place.bundle_labels.empty() ? Labels() : place.bundle_labels.front();
  add_place(jobs_, demand_.jobs, place.bundles.front(), labels,
            [&] { return "job " + job.job.short_hex(); });
}

void DemandShapes::add(const GroupSpec& group) {
  GroupSpec shape = group;
  shape.group = {};
  shape.name.clear();
  // Those that wait in line are mostly alike: the one that was met last is looked at first.
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const std::size_t at = (last_ + i) % shapes_.size();
    if (shapes_[at] != shape) continue;
    ++demand_.groups[at].count;
    last_ = at;
    return;
  }
  if (shapes_.size() >= Demand::kShapesMax ||
      bundles_ + group.bundles.size() > Demand::kBundlesMax) {
    ++demand_.unlisted;
    return;
  }
  bundles_ += group.bundles.size();
  last_ = shapes_.size();
  shapes_.push_back(std::move(shape));
  demand_.groups.push_back({group, 1});
}

}  // namespace runtime
