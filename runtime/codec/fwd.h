// Forward declarations of the actor layer.
#pragma once

#include <memory>

#include "runtime/core/clock.h"

namespace boost::asio {
class any_io_executor;
template <class T, class Executor>
class awaitable;
}  // namespace boost::asio

namespace runtime {

struct CoroutineState;

class Channel;
class Event;
struct CallNotice;
struct Message;
struct MethodEntry;
struct ObjectLocation;
struct OutgoingCall;
class Lineage;
class Producer;
enum class CancelMode;

class ActorClass;
class ActorClient;
class CallContext;
class Decoder;
class Encoder;
class ObjectState;
class ObjectTable;
class Process;
class Registry;
class Runtime;
class StoredObject;
class StreamSender;
class StreamState;
class Timer;
class WorkerLink;

template <class T>
class ActorGroup;
template <class T>
class ActorHandle;
template <class T>
class ArrayView;
template <class T>
class ObjectRef;
template <class T>
class Stream;
template <class T>
class StreamWriter;
template <class T>
struct Codec;

/// The shared state of an ObjectRef: what refs, calls and tables pass around.
using ObjectStatePtr = std::shared_ptr<ObjectState>;
using OutgoingCallPtr = std::shared_ptr<OutgoingCall>;

}  // namespace runtime
