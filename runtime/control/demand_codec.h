// Demand to and from its Cap'n Proto form. As schema_values.h: load() throws kj::Exception on
// malformed input.
#pragma once

#include "runtime/control/demand.h"
#include "runtime/schema/membership.capnp.h"

namespace runtime::schema_values {

void store(const PlaceShape& from, schema::Demand::Place::Builder to);
void store(const GroupShape& from, schema::Demand::Group::Builder to);
void store(const NodeUse& from, schema::Demand::Node::Builder to);
void store(const Demand& from, schema::Demand::Builder to);

PlaceShape load(schema::Demand::Place::Reader from);
GroupShape load(schema::Demand::Group::Reader from);
NodeUse load(schema::Demand::Node::Reader from);
Demand load(schema::Demand::Reader from);

}  // namespace runtime::schema_values
