#include "runtime/control/demand_codec.h"

#include "runtime/control/schema_values.h"

namespace runtime::schema_values {

void store(const PlaceShape& from, schema::Demand::Place::Builder to) {
  store(from.resources, to.initResources(count(from.resources)));
  store(from.labels, to.initLabels(count(from.labels)));
  to.setCount(from.count);
  to.setExample(text(from.example));
}

PlaceShape load(schema::Demand::Place::Reader from) {
  return {load(from.getResources()), load(from.getLabels()), from.getCount(),
          load_text(from.getExample())};
}

void store(const GroupShape& from, schema::Demand::Group::Builder to) {
  store(from.spec, to.initSpec());
  to.setCount(from.count);
}

GroupShape load(schema::Demand::Group::Reader from) {
  return {load(from.getSpec()), from.getCount()};
}

void store(const NodeUse& from, schema::Demand::Node::Builder to) {
  store(from.info, to.initInfo());
  to.setActors(from.actors);
  to.setBundles(from.bundles);
  to.setJobs(from.jobs);
  to.setSoleCopies(from.sole_copies);
  to.setLastPlaced(from.last_placed);
}

NodeUse load(schema::Demand::Node::Reader from) {
  return {load(from.getInfo()), from.getActors(),     from.getBundles(),
          from.getJobs(),       from.getSoleCopies(), from.getLastPlaced()};
}

void store(const Demand& from, schema::Demand::Builder to) {
  store_list(from.actors, to.initActors(count(from.actors)));
  store_list(from.jobs, to.initJobs(count(from.jobs)));
  store_list(from.groups, to.initGroups(count(from.groups)));
  to.setUnlisted(from.unlisted);
  to.setBound(from.bound);
  store_list(from.nodes, to.initNodes(count(from.nodes)));
}

Demand load(schema::Demand::Reader from) {
  Demand to;
  to.actors = load_list<PlaceShape>(from.getActors());
  to.jobs = load_list<PlaceShape>(from.getJobs());
  to.groups = load_list<GroupShape>(from.getGroups());
  to.unlisted = from.getUnlisted();
  to.bound = from.getBound();
  to.nodes = load_list<NodeUse>(from.getNodes());
  return to;
}

}  // namespace runtime::schema_values
