// Forward declarations of the codec, and of what passes through it unseen.
#pragma once

#include <memory>

namespace runtime {

class Decoder;
class Encoder;
template <class T>
class ArrayView;
template <class T>
struct Codec;

// Of runtime/call. What a value refers to has its place in a table next to the bytes. Objects and
// handles have a context. The codec hands both on.
struct ObjectContext;
class ObjectState;

using ObjectContextPtr = std::shared_ptr<const ObjectContext>;
/// The shared state of an ObjectRef: what refs, calls and tables pass around.
using ObjectStatePtr = std::shared_ptr<ObjectState>;

}  // namespace runtime
