// ObserveControl and its answers to and from their Cap'n Proto form. Private to the codec: load()
// throws kj::Exception on malformed input, which control_codec.cpp turns into a Status.
#pragma once

#include "runtime/control/observe.h"
#include "runtime/schema/observe.capnp.h"

namespace runtime::schema_values {

void store(const ObserveControl& from, schema::ObserveRequest::Builder to);
void store(const ObserveAnswer& from, schema::ObserveReply::Builder to);
ObserveControl load(schema::ObserveRequest::Reader from);
ObserveAnswer load(schema::ObserveReply::Reader from);

}  // namespace runtime::schema_values
