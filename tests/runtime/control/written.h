// Written: a message of one value of the cluster, as some program may have written it.
#pragma once

#include <capnp/message.h>

#include "runtime/control/demand_codec.h"
#include "runtime/control/schema_values.h"

namespace runtime {

/// `to` may be changed before it is read.
template <class Schema>
struct Written {
  capnp::MallocMessageBuilder builder;
  mutable typename Schema::Builder to = builder.initRoot<Schema>();

  template <class T>
  explicit Written(const T& value) {
    schema_values::store(value, to);
  }
  auto read() const { return schema_values::load(to.asReader()); }
};

}  // namespace runtime
