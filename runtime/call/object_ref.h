// ObjectRef<T>: a future of one immutable object, wherever it is.
#pragma once

#include <memory>
#include <utility>

#include "runtime/call/fwd.h"
#include "runtime/call/object_state.h"
#include "runtime/codec/codec.h"

namespace runtime {

/// The result of a call, or an object that was put. Copyable and serialisable. Give it to other
/// actors as an argument, in a struct or in a container: they get the object without its passing
/// through here. The object lives while some process holds a reference to it and the process that
/// made it lives. Fetch it with Runtime::get. A default-constructed one refers to nothing; getting
/// it fails with kInvalidArgument.
template <class T>
class ObjectRef {
 public:
  using value_type = T;

  ObjectRef() = default;
  explicit ObjectRef(ObjectStatePtr state) : state_(std::move(state)) {}

  /// Whether it refers to an object, settled or not.
  bool is_valid() const { return state_ != nullptr; }
  /// Whether get() would return at once (with the value or a failure), apart from the time to fetch
  /// from another node.
  bool is_ready() const { return state_ != nullptr && state_->is_settled(); }

  /// Same object.
  bool operator==(const ObjectRef&) const = default;

  const ObjectStatePtr& state() const { return state_; }

 private:
  ObjectStatePtr state_;
};

template <class T>
struct Codec<ObjectRef<T>> {
  static void encode(Encoder& encoder, const ObjectRef<T>& ref) {
    Codec<bool>::encode(encoder, ref.is_valid());
    if (ref.is_valid()) encoder.write_ref(ref.state());
  }
  static void decode(Decoder& decoder, ObjectRef<T>& ref) {
    ref = decoder.read_bool() ? ObjectRef<T>(referred_object(decoder.read_ref())) : ObjectRef<T>();
  }
};

/// Waits for the object and decodes it. What Runtime::get does.
template <class T>
Result<T> fetch(const ObjectState& state, Deadline deadline) {
  Result<Buffer> bytes = state.open(deadline);
  if (!bytes.ok()) return bytes.status();
  Decoder decoder = state.decoder(*std::move(bytes));
  return decode_all<T>(decoder);
}

}  // namespace runtime
