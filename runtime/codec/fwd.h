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

// Of runtime/call. What a value refers to has its place in a table next to the bytes. Handles
// belong to a process. The codec hands both on.
class ObjectState;
class Process;

/// The shared state of an ObjectRef: what refs, calls and tables pass around.
using ObjectStatePtr = std::shared_ptr<ObjectState>;

}  // namespace runtime
