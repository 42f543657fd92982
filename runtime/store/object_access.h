// ObjectAccess: what a reference to an object in a store asks of its process's client.
#pragma once

#include "runtime/core/clock.h"
#include "runtime/core/result.h"
#include "runtime/store/bytes_view.h"
#include "runtime/store/object_location.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// Each method is as ObjectClient's. Any thread.
class ObjectAccess {
 public:
  virtual bool is_forked() const = 0;
  virtual Result<BytesView> get(const ObjectLocation& location, Deadline deadline) = 0;
  virtual void get(const ObjectLocation& location, Deadline deadline,
                   UniqueFunction<void(Result<BytesView>)> done) = 0;
  virtual void free(const ObjectLocation& location) = 0;
  virtual void borrow(const ObjectLocation& location) = 0;
  virtual void unborrow(const ObjectLocation& location) = 0;
  virtual void take_over(const ObjectLocation& location, Deadline deadline,
                         UniqueFunction<void(Result<ObjectLocation>)> done) = 0;

 protected:
  ~ObjectAccess() = default;
};

}  // namespace runtime
