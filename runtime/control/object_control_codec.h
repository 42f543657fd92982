// ObjectControl and its answers to and from their Cap'n Proto form. Private to the codec: load()
// throws kj::Exception on malformed input, which control_codec.cpp turns into a Status.
#pragma once

#include "runtime/control/object_control.h"
#include "runtime/schema/published.capnp.h"

namespace runtime::schema_values {

void store_value(const PublishedValue& from, schema::PublishedValue::Builder to);
PublishedValue load_value(schema::PublishedValue::Reader from);

void store(const ObjectControl& from, schema::ObjectControl::Builder to);
void store(const ObjectControlAnswer& from, schema::ObjectControlReply::Builder to);
ObjectControl load(schema::ObjectControl::Reader from);
ObjectControlAnswer load(schema::ObjectControlReply::Reader from);

}  // namespace runtime::schema_values
